// Processes and transactions as the database sees them: real parts of the runtime on real connections, driven step by step.
import type pg from 'pg'
import { onTestFinished } from 'vitest'
import { recogniseDatabase } from '../../packages/postbox/src/adapters/recognise.ts'
import { type Claimer, createClaimer } from '../../packages/postbox/src/runtime/claimer.ts'
import type { Held } from '../../packages/postbox/src/runtime/held.ts'
import { createLane, type Lane } from '../../packages/postbox/src/runtime/lane.ts'
import type { ClaimedQueue } from '../../packages/postbox/src/sql/claim-messages.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { type Names, resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { type Release, releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { type FakeClock, fakeClock } from './fake-clock.ts'
import { longWaitLimitMs } from './patience.ts'
import { eventually } from './signals.ts'

/** A statement that went through a lane, and what came back. */
export interface Exchange {
  readonly statement: Statement<unknown>
  readonly rows: readonly unknown[]
}

export interface Taking {
  readonly queue?: string
  readonly leaseMs?: number
  readonly kind?: 'claim' | 'sweep'
}

/** One outbox process: a claimer on a lane of its own, without the loop around them. */
export interface Worker {
  readonly claimer: Claimer
  readonly lane: Lane
  readonly names: Names
  readonly clock: FakeClock
  readonly exchanges: readonly Exchange[]
  /** Claims at most `room` rows. Of queue `orders`, for a minute, from the cursor, unless told otherwise. */
  take(room: number, taking?: Taking): Promise<readonly Held[]>
  run<Row>(statement: Statement<Row>): Promise<readonly Row[]>
}

/** `database` is anything that an outbox accepts. Its connection is given back when the test ends. */
export function openWorker(database: unknown, schema: string, generation: number | null = null): Worker {
  const recognised = recogniseDatabase(database)
  if (recognised === null) throw new Error('expected a pool')
  const names = resolveNames({ schema, table: 'outbox' })
  const clock = fakeClock()
  const exchanges: Exchange[] = []
  const lane = recorded(createLane({ database: recognised, statementTimeoutMs: 60_000 }), exchanges)
  onTestFinished(() => lane.close())
  const claimer = createClaimer({ lane, names, clock, generation })
  return {
    claimer,
    lane,
    names,
    clock,
    exchanges,
    async take(room, { queue = 'orders', leaseMs = 60_000, kind = 'claim' } = {}) {
      const found = await claimer.claim([{ queue, room, leaseMs }], kind)
      return found.flatMap(({ held }) => held)
    },
    run: (statement) => lane.run(statement),
  }
}

function recorded(lane: Lane, exchanges: Exchange[]): Lane {
  return {
    async run<Row>(given: Statement<Row> | (() => Statement<Row> | null)) {
      let sent: Statement<Row> | null = null
      const rows = await lane.run(() => {
        sent = typeof given === 'function' ? given() : given
        return sent
      })
      if (sent !== null) exchanges.push({ statement: sent, rows })
      return rows
    },
    get connection() {
      return lane.connection
    },
    close: () => lane.close(),
  }
}

/** What the last claim asked for, of its first queue. */
export function lastAsked({ exchanges }: Worker): ClaimedQueue {
  const claim = exchanges.findLast(({ statement }) => statement.name === 'claim_messages')
  return JSON.parse(String(claim?.statement.values[0]))[0]
}

/**
 * Claims and deletes until claims begin behind that seq. The clock goes on by the patience each time: transactions of other tests on
 * the same server hold a cursor back no longer than that.
 */
export async function passBy(worker: Worker, seq: number): Promise<void> {
  const isBehind = async (): Promise<boolean> => {
    worker.clock.advance(250)
    const held = await worker.take(500)
    await worker.run(deleteAcked(worker.names, fencesOf(held)))
    return Number(lastAsked(worker).after) >= seq
  }
  await eventually(isBehind, { what: `the cursor to pass ${seq}`, withinMs: longWaitLimitMs })
}

export function seqsOf(held: readonly Held[]): readonly number[] {
  return held.map(({ lease }) => Number(lease.seq))
}

export function fencesOf(held: readonly Held[]): readonly Release[] {
  return held.map(({ lease: { seq, token, deliveries } }) => ({
    seq,
    token,
    deliveriesBefore: deliveries - 1,
  }))
}

/** Somebody's transaction, as long as the test lets it live. */
export interface OpenTransaction {
  /** Its xid, which it gets here at the latest. */
  identify(): Promise<bigint>
  insert(queue?: string): Promise<number>
  query(text: string): Promise<readonly Record<string, unknown>[]>
  commit(): Promise<void>
  rollback(): Promise<void>
}

/** Rolled back when the test ends, if it has not ended by then. */
export async function openTransaction(pool: pg.Pool): Promise<OpenTransaction> {
  const client = await pool.connect()
  const query = async (text: string): Promise<Record<string, unknown>[]> => (await client.query(text)).rows
  let isOpen = true
  const end = async (how: 'commit' | 'rollback'): Promise<void> => {
    if (!isOpen) return
    isOpen = false
    await query(how)
    client.release()
  }
  onTestFinished(() => end('rollback'))
  await query('begin')
  return {
    query,
    async identify() {
      const [row] = await query('select pg_current_xact_id()::text as xid')
      return BigInt(String(row?.['xid']))
    },
    async insert(queue = 'orders') {
      const text = `insert into outbox (id, queue, body) values (gen_random_uuid(), '${queue}', '1') returning seq`
      const [row] = await query(text)
      return Number(row?.['seq'])
    },
    commit: () => end('commit'),
    rollback: () => end('rollback'),
  }
}

export interface Filling {
  readonly rows: number
  readonly queue?: string
  /** SQL of the time at which row `n` is due. @default null, that is fresh */
  readonly dueAt?: string
  readonly generation?: number | null
}

/** A pool, or the connection of the support. */
interface Queryable {
  query(text: string, values: unknown[]): Promise<unknown>
}

/** Rows by SQL: thousands of them at once, and due whenever the test likes. */
export async function fill(
  database: Queryable,
  { rows, queue = 'orders', dueAt = 'null', generation = null }: Filling,
): Promise<void> {
  await database.query(
    `insert into outbox (id, queue, body, due_at, generation)
     select gen_random_uuid(), $1, '{"n":1}', ${dueAt}, $3::bigint from generate_series(1, $2::int) as n`,
    [queue, rows, generation],
  )
}

/** The same address, with settings for each connection that it opens. */
export function withSettings(url: string, settings: Readonly<Record<string, string>>): string {
  const address = new URL(url)
  const given = address.searchParams.get('options') ?? ''
  const added = Object.entries(settings).map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
  address.searchParams.set('options', [given, ...added].join(' '))
  // URLSearchParams writes "+" for a space: not every driver reads it back.
  return address.href.replaceAll('+', '%20')
}

export interface LifeOptions {
  /** The same seed makes the same choices. */
  readonly seed: number
  readonly steps: number
  /** Sweeps and releases, and transactions of any age; else claims only, and none older than 150 ms. */
  readonly sweeps: boolean
}

export interface Life {
  /** Seqs that were committed, and seqs that were claimed, in order. */
  readonly committed: readonly number[]
  readonly delivered: readonly number[]
  /** Seqs that lived or appeared below where a sweep had begun. */
  readonly hidden: readonly number[]
}

interface Publisher {
  readonly tx: OpenTransaction
  readonly seqs: number[]
  readonly since: number
}

/** Up to eight publishers that begin, insert, commit and roll back in any order, around one worker. It ends when all is delivered. */
export async function randomLife(worker: Worker, pool: pg.Pool, options: LifeOptions): Promise<Life> {
  const { steps, sweeps } = options
  const random = seeded(options.seed)
  const open: Publisher[] = []
  const committed = new Set<number>()
  const delivered = new Set<number>()
  const hidden = new Set<number>()
  let held: readonly Held[] = []
  let floor = 0

  const begin = async (): Promise<void> => {
    const tx = await openTransaction(pool)
    // A transaction whose first write is the insert gets its seq some microseconds before its xid: those are for a sweep from zero.
    await tx.identify()
    open.push({ tx, seqs: [], since: worker.clock.now() })
  }
  const end = async (publisher: Publisher): Promise<void> => {
    open.splice(open.indexOf(publisher), 1)
    if (random() < 0.2) return publisher.tx.rollback()
    for (const seq of publisher.seqs) {
      committed.add(seq)
      if (seq <= floor) hidden.add(seq)
    }
    await publisher.tx.commit()
  }
  const look = async (kind: 'claim' | 'sweep', room = 1 + Math.floor(random() * 10)): Promise<number> => {
    const taken = await worker.take(room, { kind })
    for (const seq of seqsOf(taken)) delivered.add(seq)
    held = [...held, ...taken]
    if (kind === 'claim') return taken.length
    floor = Math.max(floor, Number(lastAsked(worker).after))
    const { rows } = await pool.query('select seq from outbox where seq <= $1 and due_at is null', [floor])
    for (const { seq } of rows) hidden.add(Number(seq))
    return taken.length
  }
  const settle = async (): Promise<void> => {
    const released = held.filter(() => sweeps && random() < 0.3)
    const done = held.filter((one) => !released.includes(one))
    held = []
    await worker.run(releaseLeases(worker.names, fencesOf(released), false))
    await worker.run(deleteAcked(worker.names, fencesOf(done)))
  }
  const step = async (): Promise<void> => {
    worker.clock.advance(sweeps ? random() * 40 : 1)
    const oldest = open[0]
    if (oldest && !sweeps && worker.clock.now() - oldest.since >= 150) return end(oldest)
    const one = open[Math.floor(random() * open.length)]
    const chance = random()
    if (one === undefined || (chance < 0.15 && open.length < 8)) await begin()
    else if (chance < 0.45) one.seqs.push(await one.tx.insert())
    else if (chance < 0.6) await end(one)
    else if (chance < 0.65) await settle()
    else await look(sweeps && chance > 0.85 ? 'sweep' : 'claim')
  }

  for (let count = 0; count < steps; count++) await step()
  for (const publisher of [...open]) await end(publisher)
  while ((await look(sweeps ? 'sweep' : 'claim', 100)) > 0) await settle()
  const inOrder = (seqs: ReadonlySet<number>): number[] => [...seqs].sort((a, b) => a - b)
  return { committed: inOrder(committed), delivered: inOrder(delivered), hidden: inOrder(hidden) }
}

export interface Churned {
  readonly claims: number
  readonly rows: number
  /** Rows that came to somebody while another had them. */
  readonly doubles: number
  /** Claims that brought more than they asked for. */
  readonly overs: number
}

/**
 * Workers that claim, release and delete at random, all at once, until so many claims were made. Each keeps what it has until after its
 * next claim, so that there is always something in every hand.
 */
export async function churn(workers: readonly Worker[], pool: pg.Pool, claims: number): Promise<Churned> {
  const room = 7
  const inHand = new Set<string>()
  const counts = { claims: 0, rows: 0, doubles: 0, overs: 0 }
  const take = async (worker: Worker): Promise<readonly Held[]> => {
    counts.claims++
    const held = await worker.take(room, { kind: Math.random() < 0.5 ? 'sweep' : 'claim' })
    for (const { lease } of held) {
      if (inHand.has(lease.seq)) counts.doubles++
      inHand.add(lease.seq)
    }
    counts.rows += held.length
    if (held.length > room) counts.overs++
    return held
  }
  const letGo = async (worker: Worker, held: readonly Held[]): Promise<void> => {
    const released = held.filter(() => Math.random() < 0.5)
    const done = held.filter((one) => !released.includes(one))
    // From the moment that it is sent, another may have them.
    for (const { lease } of held) inHand.delete(lease.seq)
    await worker.run(releaseLeases(worker.names, fencesOf(released), false))
    await worker.run(deleteAcked(worker.names, fencesOf(done)))
  }
  const live = async (worker: Worker): Promise<void> => {
    let kept: readonly Held[] = []
    while (counts.claims < claims) {
      const taken = await take(worker)
      await letGo(worker, kept)
      kept = taken
      if (taken.length === 0)
        await fill(pool, { rows: 4 * room, dueAt: 'case when n % 3 = 0 then now() end' })
    }
    await letGo(worker, kept)
  }
  await Promise.all(workers.map(live))
  return counts
}

/** Numbers in [0, 1) that look random and are always the same (Park and Miller). */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}
