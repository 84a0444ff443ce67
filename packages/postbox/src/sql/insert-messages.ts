// Path 2/7 · row: drafts → one statement that inserts them and wakes whoever sleeps.
import type { Batch } from '../core/batch.ts'
import type { Headers } from '../core/headers.ts'
import type { Conflict, Draft } from '../core/message.ts'
import type { Schedule } from '../core/schedule.ts'
import { unreachable } from '../core/unreachable.ts'
import { whereMarked } from './mark-transaction.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'
import { type Wake, wakeClause } from './wake.ts'

export interface InsertOptions {
  readonly wake: Wake
  /** The transaction's mark, where the handle cannot tell whether it is in one; else null. */
  readonly mark: string | null
}

export interface InsertedRow {
  readonly id: string
  readonly seq: string
}

const columns = 'id, queue, key, timer_id, body, headers, due_at, generation'

/**
 * Inserts one message, flat: the shape that every client's parameters survive, and the fastest for one row.
 * Returns the row written; none when a waiting timer was kept.
 */
export function insertMessage(
  names: Names,
  draft: Draft,
  { wake, mark }: InsertOptions,
): Statement<InsertedRow> {
  const { delayMs, epochMs } = dueOf(draft.schedule)
  return {
    name: 'insert_message',
    text: `
with inserted as (
  insert into ${names.messages} as m (${columns})
  select $1::uuid, $2::text, $3::text, $4::text, $5::bytea, $6::text::jsonb, ${dueAt('$7::float8', '$8::float8')}, $9::bigint
   where ${whereMarked('$10')}${onConflict(draft.conflict)}
  returning m.id, m.seq, m.due_at
)${wakeClause(names, wake, '$2::text')}
select id::text as id, seq::text as seq, (select count(*) from woken)::int as woken
  from inserted`,
    values: [
      draft.id,
      draft.queue,
      draft.key,
      draft.timerId,
      draft.body,
      headersText(draft.headers),
      delayMs,
      epochMs,
      draft.generation,
      mark,
    ],
  }
}

/**
 * Inserts any number of messages of one queue with one parameter: a JSON text, bodies in base64. As text because two
 * clients encode a string bound to jsonb a second time. Rows get their seq in the order of the drafts.
 * Returns the rows written; a draft whose id is missing met a waiting timer.
 */
export function insertMessages(
  names: Names,
  batch: Batch,
  { wake, mark }: InsertOptions,
): Statement<InsertedRow> {
  return {
    name: 'insert_messages',
    text: `
with drafts as (
  select d.*
    from rows from (
           jsonb_to_recordset($2::text::jsonb)
             as (id uuid, key text, timer text, body text, headers jsonb, delay float8, epoch float8, generation bigint)
         ) with ordinality
      as d(id, key, timer, body, headers, delay, epoch, generation, place)
), inserted as (
  insert into ${names.messages} as m (${columns})
  select id, $1::text, key, timer, decode(body, 'base64'), headers, ${dueAt('delay', 'epoch')}, generation
    from drafts
   where ${whereMarked('$3')}
   order by place${onConflict(batch.conflict)}
  returning m.id, m.seq, m.due_at
)${wakeClause(names, wake, '$1::text')}
select id::text as id, seq::text as seq, (select count(*) from woken)::int as woken
  from inserted`,
    values: [batch.queue, JSON.stringify(batch.drafts.map(recordOf)), mark],
  }
}

/** Members that would be null are left out (undefined): parsing them took up to 18 % of a batch's time. */
function recordOf(draft: Draft): Record<string, unknown> {
  const { delayMs, epochMs } = dueOf(draft.schedule)
  return {
    id: draft.id,
    key: draft.key ?? undefined,
    timer: draft.timerId ?? undefined,
    body: Buffer.from(draft.body.buffer, draft.body.byteOffset, draft.body.byteLength).toString('base64'),
    headers: draft.headers ?? undefined,
    delay: delayMs ?? undefined,
    epoch: epochMs ?? undefined,
    generation: draft.generation ?? undefined,
  }
}

/**
 * When the row is due, by the database's clock; null (the hot lane) for now and for times that have passed. Counted from
 * the statement, not from the start of a transaction that may be minutes old.
 */
function dueAt(delayMs: string, epochMs: string): string {
  return `case
      when ${delayMs} is not null then statement_timestamp() + make_interval(secs => ${delayMs} / 1000)
      when to_timestamp(${epochMs} / 1000) > statement_timestamp() then to_timestamp(${epochMs} / 1000)
    end`
}

/**
 * A plain insert has no such clause: a speculative insertion costs an extra WAL record per row. A replaced timer becomes a
 * new message in the old one's place; its seq lies below every claimer's cursor by now, so it must be in the due lane.
 */
function onConflict(conflict: Conflict): string {
  const arbiter = `
  on conflict (queue, timer_id) where timer_id is not null and failed_at is null`
  switch (conflict) {
    case 'none':
      return ''
    case 'keep':
      return `${arbiter} do nothing`
    case 'replace':
      return `${arbiter} do update
     set id = excluded.id, key = excluded.key, body = excluded.body, headers = excluded.headers,
         due_at = coalesce(excluded.due_at, statement_timestamp()), generation = excluded.generation,
         created_at = now(), attempts = 0, deliveries = 0, first_attempt_at = null, last_attempt_at = null, last_error = null
   where m.lease_token is null`
    default:
      return unreachable(conflict)
  }
}

function dueOf(schedule: Schedule): { readonly delayMs: number | null; readonly epochMs: number | null } {
  switch (schedule.kind) {
    case 'now':
      return { delayMs: null, epochMs: null }
    case 'after':
      return { delayMs: schedule.delayMs, epochMs: null }
    case 'at':
      return { delayMs: null, epochMs: schedule.epochMs }
    default:
      return unreachable(schedule)
  }
}

function headersText(headers: Headers | null): string | null {
  return headers === null ? null : JSON.stringify(headers)
}
