// Dead letters by SQL: as many as a test likes, and failed whenever it likes.
import { randomUUID } from 'node:crypto'

/** Columns of either table, as JSON has them; what is left out is made up. */
export interface Letter {
  readonly id?: string
  readonly queue?: string
  readonly key?: string
  /** The name of a timer: a quarantined one has given it up, and keeps it elsewhere. */
  readonly timer?: string
  /** Text of the body. */
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly attempts?: number
  readonly deliveries?: number
  readonly created_at?: string
  readonly first_attempt_at?: string
  readonly last_attempt_at?: string
  readonly generation?: number
  readonly failed_at?: string
  readonly failure_reason?: string
  readonly last_error?: string
  readonly failure_history?: unknown
}

export type Place = 'moved' | 'quarantined'

/** The connection of the support, or a pool. */
interface Queryable {
  query(text: string, values: unknown[]): Promise<unknown>
}

const columns =
  'id, queue, key, body, headers, attempts, deliveries, created_at, first_attempt_at, last_attempt_at, generation, failed_at, failure_reason, last_error, failure_history'

const inserts: Readonly<Record<Place, string>> = {
  moved: `insert into outbox_dead (${columns}, timer_id, original_seq)
          select ${columns}, timer_id, 7 from jsonb_populate_recordset(null::outbox_dead, $1::text::jsonb)`,
  quarantined: `insert into outbox (${columns}, fired_timer_id, due_at)
                select ${columns}, timer_id, 'infinity' from jsonb_populate_recordset(null::outbox, $1::text::jsonb)`,
}

/** Returns their ids. */
export async function layDown(
  database: Queryable,
  place: Place,
  letters: readonly Letter[],
): Promise<readonly string[]> {
  const rows = letters.map(rowOf)
  await database.query(inserts[place], [JSON.stringify(rows)])
  return rows.map(({ id }) => id)
}

const filled: Readonly<Record<Place, string>> = {
  moved: `insert into outbox_dead (original_seq, id, queue, body, attempts, deliveries, created_at, failed_at, failure_reason)
          select n,`,
  quarantined: `insert into outbox (due_at, id, queue, body, attempts, deliveries, created_at, failed_at, failure_reason)
                select 'infinity',`,
}

interface Filling {
  readonly queue?: string
  readonly place?: Place
  /** For who asks for times among them: when it is now, however long it takes to fill. */
  readonly now?: Date
}

/** So many at once, a millisecond apart, the newest failed a minute ago. */
export async function fillDead(
  database: Queryable,
  rows: number,
  { queue = 'orders', place = 'moved', now }: Filling = {},
): Promise<void> {
  await database.query(
    `${filled[place]} gen_random_uuid(), $2, '1', 1, 1, now(),
            coalesce($3::timestamptz, now()) - interval '1 minute' - n * interval '1 ms', 'rejected'
       from generate_series(1, $1::int) as n`,
    [rows, queue, now?.toISOString() ?? null],
  )
}

function rowOf({ timer, body = '{"n":1}', ...letter }: Letter): Letter & { readonly id: string } {
  return {
    id: randomUUID(),
    queue: 'orders',
    attempts: 3,
    deliveries: 4,
    created_at: '2026-01-01T00:00:00Z',
    failed_at: '2026-01-02T00:00:00Z',
    failure_reason: 'rejected',
    ...letter,
    ...{ timer_id: timer, body: `\\x${Buffer.from(body).toString('hex')}` },
  }
}
