// kill -9 at a failpoint, while a second process goes on.
import type pg from 'pg'
import { expect } from 'vitest'
import type { FailpointName } from '../../packages/postbox/src/runtime/failpoint.ts'
import type { TestDatabase } from '../support/database.ts'
import { eventually } from '../support/signals.ts'
import { openLedger } from './ledger.ts'
import { type Child, expectSound, type Programs } from './processes.ts'
import { type Trap, transactionPoints } from './protocol.ts'
import type { Random } from './random.ts'

export interface KillScene {
  readonly database: TestDatabase
  readonly pool: pg.Pool
  readonly programs: Programs
  /** The process that goes on. */
  readonly survivor: Child
}

export interface Kill {
  readonly point: FailpointName
  readonly nth: number
  readonly random: Random
}

// The survivor's leases are told by their length. Nobody waits for them to end: it is never killed.
const survivorLeaseMs = 600_000
const concurrency = 4
const prefetch = 4

export function startSurvivor(database: TestDatabase, programs: Programs, transacts = false): Child {
  const options = { concurrency, prefetch, leaseMs: survivorLeaseMs, pollMs: { min: 20, max: 100 } }
  return programs.worker({ url: database.url, schema: database.schema, options, transacts })
}

/** Publishes until the victim has died where it should, and checks that the survivor makes up for it. Returns what the victim had in hand. */
export async function killAt(scene: KillScene, { point, nth, random }: Kill): Promise<readonly string[]> {
  const { database, pool, survivor } = scene
  const ledger = await openLedger(database, pool)
  await using victim = startVictim(scene, { point, nth, action: 'kill', whileRenewing: isRenewal(point) })
  await ledger.publishUntil(() => victim.hasEnded, random)
  expect(await victim.ended).toEqual({ code: null, signal: 'SIGKILL', output: '' })

  const leased = await endLeasesOf(victim, database)
  const inHand = isRenewal(point) ? [...leased, ...(await startedBy(victim, database))] : leased
  await ledger.publish(random)
  await ledger.untilEmpty()

  const repeated = await ledger.assertConserved()
  for (const { workers } of repeated) expect(workers).toEqual([victim.pid, survivor.pid])
  expect(repeated.filter(({ id }) => !inHand.includes(id))).toEqual([])
  await expectSound(survivor)
  return inHand
}

/** The same where handlers work in the transaction that ends their message: whatever dies, each has taken effect exactly once. */
export async function killInTransaction(scene: KillScene, { point, nth, random }: Kill): Promise<void> {
  const { database, pool, survivor } = scene
  const ledger = await openLedger(database, pool)
  await using victim = startVictim(scene, { point, nth, action: 'kill', whileRenewing: false })
  await ledger.publishUntil(() => victim.hasEnded, random)
  expect(await victim.ended).toEqual({ code: null, signal: 'SIGKILL', output: '' })

  await endLeasesOf(victim, database)
  await ledger.publish(random)
  await ledger.untilEmpty()

  expect(await ledger.assertConserved()).toEqual([])
  await expectSound(survivor)
}

function startVictim({ database, programs }: KillScene, trap: Trap): Child {
  // Where leases are renewed they have to be short, and the handlers must not end.
  const leaseMs = trap.whileRenewing ? 4_000 : 30_000
  const options = { concurrency, prefetch, leaseMs, pollMs: { min: 20, max: 100 } }
  const { url, schema } = database
  const transacts = transactionPoints.includes(trap.point)
  return programs.worker({ url, schema, options, trap, transacts, waits: trap.whileRenewing })
}

function isRenewal(point: FailpointName): boolean {
  return point.includes('renewal')
}

/** Nobody waits for the leases of the dead: they end now. Returns the messages that it had in hand. */
async function endLeasesOf(victim: Child, database: TestDatabase): Promise<readonly string[]> {
  // A claim or a flush that was under way is carried out after the death of who sent it.
  await eventually(async () => !(await isConnected(victim, database)), { what: 'the last statement to end' })
  const rows = await database.query<{ id: string }>(
    `
      update outbox
         set leased_until = now() - interval '1 second'
       where lease_token is not null
         and leased_until < now() + make_interval(secs => $1)
      returning id::text
    `,
    [survivorLeaseMs / 2_000],
  )
  return rows.map(({ id }) => id)
}

/** What a process has in hand whose handlers never end. Its leases are short, and may have ended by now. */
async function startedBy({ pid }: Child, database: TestDatabase): Promise<readonly string[]> {
  const rows = await database.query<{ id: string }>('select id::text from delivered where worker = $1', [pid])
  return rows.map(({ id }) => id)
}

async function isConnected({ name }: Child, database: TestDatabase): Promise<boolean> {
  const rows = await database.query('select from pg_stat_activity where application_name like $1', [
    `${name}%`,
  ])
  return rows.length > 0
}
