// The rows of the tables in one form, wherever they lie.
import type { Executor } from '../../packages/postbox/src/adapters/executor.ts'
import type { Names } from '../../packages/postbox/src/sql/names.ts'
import type { MemoryDatabase } from '../../packages/postbox/src/testing/memory/memory-database.ts'

/** What a message and a dead letter have alike. Times are milliseconds since 1970; Infinity: never. */
interface StoredRow {
  readonly seq: string
  readonly id: string
  readonly queue: string
  readonly key: string | null
  readonly timerId: string | null
  /** In base64. */
  readonly body: string
  readonly headers: unknown
  readonly attempts: number
  readonly deliveries: number
  readonly createdAt: number
  readonly firstAttemptAt: number | null
  readonly lastAttemptAt: number | null
  readonly generation: number | null
  readonly failedAt: number | null
  readonly failureReason: string | null
  readonly lastError: string | null
  readonly failureHistory: unknown
}

export interface StoredMessage extends StoredRow {
  readonly firedTimerId: string | null
  readonly laterKey: string | null
  readonly parkedAt: number | null
  readonly afterDead: string | null
  readonly dueAt: number | null
  readonly leaseToken: string | null
  readonly leasedUntil: number | null
}

export interface StoredDeadLetter extends StoredRow {
  readonly originalSeq: string
}

export interface StoredDelivered
  extends Omit<StoredRow, 'firstAttemptAt' | 'lastAttemptAt' | 'failedAt' | 'failureReason' | 'lastError'> {
  readonly originalSeq: string
  readonly deliveredAt: number
}

/** By seq. */
export interface StoreSnapshot {
  /** The clock of the store. */
  readonly now: number
  readonly messages: readonly StoredMessage[]
  readonly dead: readonly StoredDeadLetter[]
  readonly delivered: readonly StoredDelivered[]
}

/** The same with each time as whole steps from now: what two stores can agree on. */
export function inSteps(
  { now, messages, dead, delivered }: StoreSnapshot,
  stepMs = 60_000,
): Omit<StoreSnapshot, 'now'> {
  const steps = (value: unknown): unknown =>
    typeof value === 'number' && Number.isFinite(value) ? Math.round((value - now) / stepMs) + 0 : value
  const relative = <Row extends object>(row: Row): Row =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, timeNames.has(name) ? steps(value) : value]),
    ) as Row
  return {
    messages: messages.map(relative),
    dead: dead.map(relative),
    delivered: delivered.map(relative),
  }
}

const timeNames: ReadonlySet<string> = new Set([
  'createdAt',
  'firstAttemptAt',
  'lastAttemptAt',
  'failedAt',
  'dueAt',
  'leasedUntil',
  'deliveredAt',
  'parkedAt',
])

/** Member → column. */
const ofAll = {
  id: 'id::text',
  queue: 'queue',
  key: 'key',
  timerId: 'timer_id',
  body: `translate(encode(body, 'base64'), e'\\n', '')`,
  headers: 'headers',
  attempts: 'attempts',
  deliveries: 'deliveries',
  createdAt: ms('created_at'),
  generation: 'generation',
  failureHistory: 'failure_history',
}
const shared = {
  ...ofAll,
  firstAttemptAt: ms('first_attempt_at'),
  lastAttemptAt: ms('last_attempt_at'),
  failedAt: ms('failed_at'),
  failureReason: 'failure_reason',
  lastError: 'last_error',
}
const ofMessages = {
  seq: 'seq::text',
  ...shared,
  firedTimerId: 'fired_timer_id',
  laterKey: 'later_key',
  parkedAt: ms('parked_at'),
  afterDead: 'after_dead::text',
  dueAt: ms('due_at'),
  leaseToken: 'lease_token::text',
  leasedUntil: ms('leased_until'),
}
const ofDeadLetters = { seq: 'dead_seq::text', ...shared, originalSeq: 'original_seq::text' }
const ofDelivered = {
  seq: 'delivered_seq::text',
  ...ofAll,
  originalSeq: 'original_seq::text',
  deliveredAt: ms('delivered_at'),
}

/** One statement, so that all tables are seen at one moment. */
export async function snapshotBySql(executor: Executor, names: Names): Promise<StoreSnapshot> {
  const text = `select ${ms('clock_timestamp()')} as now,
       ${rowsOf(names.messages, ofMessages, 'seq')} as messages,
       ${rowsOf(names.dead, ofDeadLetters, 'dead_seq')} as dead,
       ${rowsOf(names.delivered, ofDelivered, 'delivered_seq')} as delivered`
  const [row] = await executor.run<Record<'now' | 'messages' | 'dead' | 'delivered', string>>({
    name: 'snapshot',
    text,
    values: [],
  })
  if (row === undefined) throw new Error('expected a row')
  return {
    now: Number(row.now),
    messages: JSON.parse(row.messages).map(withTimes),
    dead: JSON.parse(row.dead).map(withTimes),
    delivered: JSON.parse(row.delivered).map(withTimes),
  }
}

export function snapshotOfMemory(
  now: number,
  {
    messages,
    deadLetters,
    deliveredMessages,
  }: Pick<MemoryDatabase, 'messages' | 'deadLetters' | 'deliveredMessages'>,
): StoreSnapshot {
  return {
    now,
    messages: messages.map(({ seq, body, ...row }) => ({ ...row, seq: String(seq), body: base64(body) })),
    dead: deadLetters.map(({ deadSeq, originalSeq, body, ...row }) => ({
      ...row,
      ...{ seq: String(deadSeq), originalSeq: String(originalSeq), body: base64(body) },
    })),
    delivered: deliveredMessages.map(({ deliveredSeq, originalSeq, body, ...row }) => ({
      ...row,
      ...{ seq: String(deliveredSeq), originalSeq: String(originalSeq), body: base64(body) },
    })),
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

function rowsOf(table: string, columns: Readonly<Record<string, string>>, order: string): string {
  const members = Object.entries(columns).map(([name, column]) => `'${name}', ${column}`)
  return `(select coalesce(jsonb_agg(jsonb_build_object(${members.join(', ')}) order by ${order}), '[]')::text from ${table})`
}

/** As text: JSON has no Infinity. */
function ms(time: string): string {
  return `(extract(epoch from ${time}) * 1000)::text`
}

function withTimes(row: object): object {
  const read = Object.entries(row).map(([name, value]) => [
    name,
    timeNames.has(name) && value !== null ? Number(value) : value,
  ])
  return Object.fromEntries(read)
}
