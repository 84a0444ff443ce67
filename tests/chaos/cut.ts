// A backend that is terminated while the worker is held at a failpoint.
import type pg from 'pg'
import type { FailpointName } from '../../packages/postbox/src/runtime/failpoint.ts'
import type { TestDatabase } from '../support/database.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { eventually } from '../support/signals.ts'
import { type Ledger, openLedger } from './ledger.ts'
import { type Child, expectSound, type Programs } from './processes.ts'
import { failpoints, type Trap, waitingBody } from './protocol.ts'
import { createRandom } from './random.ts'
import { type Role, type Session, sessionsOf, terminate } from './sessions.ts'

export interface CutScene {
  readonly database: TestDatabase
  readonly pool: pg.Pool
  /** Lives through all cuts. */
  readonly worker: Child
}

export interface Cut {
  readonly point: FailpointName
  /** The connection that is cut. */
  readonly role: Role
  /** How often the point is reached before. */
  readonly nth: number
}

const concurrency = 4

/** Every failpoint with every connection that can be there: where the worker is about to listen, it does not yet. */
const all: readonly (readonly [FailpointName, Role])[] = failpoints.flatMap((point) =>
  (['work', 'listen'] as const)
    .filter((role) => point !== 'before_listen' || role === 'work')
    .map((role) => [point, role] as const),
)

/**
 * Where leases are renewed they have to be short. Elsewhere they must not be: a renewal would go before the statement that is waited for.
 * But short enough to wait for: a claim whose answer was lost is found again when its lease has ended.
 */
export const cutsByLease = [
  { leaseMs: 3_000, cuts: all.filter(([point]) => isRenewal(point)) },
  { leaseMs: 5_000, cuts: all.filter(([point]) => !isRenewal(point)) },
]

export function startWorker(database: TestDatabase, programs: Programs, leaseMs: number): Child {
  const { url, schema } = database
  // Nothing is claimed ahead, so a worker can be full.
  const options = { concurrency, prefetch: 0, leaseMs, pollMs: { min: 20, max: 100 } }
  return programs.worker({ url, schema, options, longestSleepMs: 500 })
}

/** Holds the worker at the point, cuts the connection, lets it go on, and checks that it makes up for it. */
export async function cutAt(scene: CutScene, { point, role, nth }: Cut): Promise<void> {
  const { database, pool, worker } = scene
  const ledger = await openLedger(database, pool)
  const random = createRandom(nth)
  const trap: Trap = { point, nth, action: 'hold', whileRenewing: isRenewal(point) }

  const staged = { trap, role, ledger }
  // A cut that fails must not leave the worker where it is: others follow.
  await (isInFlight(point) ? cutInFlight(scene, staged) : cutBetween(scene, staged)).finally(() =>
    letGo(worker),
  )
  await ledger.publish(random)
  await ledger.untilEmpty()

  await ledger.assertConserved()
  await eventually(async () => roles(await sessionsOf(database, worker.name)) === 'work, listen', {
    what: 'two connections',
  })
  await expectSound(worker)
}

interface Staged {
  readonly trap: Trap
  readonly role: Role
  readonly ledger: Ledger
}

/** The worker is between two statements. */
async function cutBetween(scene: CutScene, { trap, role, ledger }: Staged): Promise<void> {
  const { worker } = scene
  const isHeld = setTrap(worker, trap)
  if (trap.whileRenewing) await ledger.publishOne(waitingBody)
  if (trap.point.endsWith('_listen')) await cut(scene, 'listen')
  await ledger.publishUntil(() => isHeld() || worker.hasEnded, createRandom(trap.nth))
  await expectSound(worker)
  await cut(scene, role)
  letGo(worker)
}

// A piece of the statement that is sent there, from its first 1,024 bytes: the server shows no more.
const statements: Partial<Record<FailpointName, string>> = {
  claim_sent: '%dueFromMs%',
  flush_sent: '%delete from%',
  renewal_sent: '%set leased_until%',
}

/** The worker has sent a statement that the server cannot carry out yet, because the table is locked: there it is held. */
async function cutInFlight(scene: CutScene, { trap: { point }, role, ledger }: Staged): Promise<void> {
  const { database, pool, worker } = scene
  // A worker that is full claims nothing: what it sends next is something else. One that has nothing claims, and nothing else.
  const busy = Array.from({ length: point === 'claim_sent' ? 0 : concurrency }, () => waitingBody)
  const ids = await Promise.all(busy.map(ledger.publishOne))
  for (const id of ids) await worker.until('delivered', (report) => report.id === id)
  await inTransaction(pool, async (locker) => {
    await locker.query(`lock table ${database.schema}.outbox in access exclusive mode`)
    if (point === 'flush_sent') worker.tell({ kind: 'finish' })
    await eventually(() => isBlocked(database, worker, statements[point] ?? ''), {
      what: 'the statement to wait for the table',
    })
    await cut(scene, role)
  })
}

function isInFlight(point: FailpointName): boolean {
  return point.endsWith('_sent')
}

function letGo(worker: Child): void {
  worker.tell({ kind: 'go on' })
  worker.tell({ kind: 'finish' })
}

/** Returns whether the worker has run into it. */
function setTrap(worker: Child, trap: Trap): () => boolean {
  const before = heldAt(worker).length
  worker.tell({ kind: 'set a trap', trap })
  return () => heldAt(worker).length > before
}

async function isBlocked(database: TestDatabase, { name }: Child, statement: string): Promise<boolean> {
  const rows = await database.query(
    `select from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock' and query like $2`,
    [name, statement],
  )
  return rows.length === 1
}

function heldAt(worker: Child): readonly unknown[] {
  return worker.reports.all.filter(({ kind }) => kind === 'held')
}

/** Resolves when the backend is gone. */
async function cut({ database, worker }: CutScene, role: Role): Promise<void> {
  const victim = await eventually(
    async () => (await sessionsOf(database, worker.name)).find((session) => session.role === role),
    { what: `a connection to ${role}` },
  )
  await terminate(database, victim.pid)
}

function roles(sessions: readonly Session[]): string {
  return sessions.map(({ role }) => role).join(', ')
}

function isRenewal(point: FailpointName): boolean {
  return point.includes('renewal')
}
