import type { Names } from './names.ts'
import type { Statement } from './statement.ts'
import { publishersLock, sleepersLock } from './wake.ts'

export interface LaidDown {
  readonly queue: string
  /** 'true': every publisher that saw nobody asleep has ended. */
  readonly clear: string
}

const queues = 'jsonb_array_elements_text($1::text::jsonb) as q(queue)'

/** P was free for a moment: nobody is between a quiet publish and its commit. */
function isClear(names: Names): string {
  return `case when pg_try_advisory_lock(${publishersLock(names, 'q.queue')})
            then pg_advisory_unlock(${publishersLock(names, 'q.queue')})
            else false
       end`
}

/**
 * A sleeper lies down, on the connection that listens: it takes F, so that publishers notify from now on, and then asks whether those
 * that stayed quiet have ended. In this order, per queue: see wakeClause for the other side. Once a queue is clear, one sweep sees
 * everything that was committed without a word, and everything later is announced.
 */
export function lieDown(names: Names, queueNames: readonly string[]): Statement<LaidDown, readonly string[]> {
  return {
    name: 'lie_down',
    text: `
with down as materialized (
  select q.queue, pg_advisory_lock_shared(${sleepersLock(names, 'q.queue')})
    from ${queues}
)
select q.queue, (${isClear(names)})::text as clear
  from down as q`,
    values: [JSON.stringify(queueNames)],
    input: queueNames,
  }
}

/** Asks again whether the quiet publishers have ended. */
export function checkClear(
  names: Names,
  queueNames: readonly string[],
): Statement<LaidDown, readonly string[]> {
  return {
    name: 'check_clear',
    text: `
select q.queue, (${isClear(names)})::text as clear
  from ${queues}`,
    values: [JSON.stringify(queueNames)],
    input: queueNames,
  }
}

/** A sleeper gets up: publishers may stay quiet again, as far as it is concerned. */
export function getUp(
  names: Names,
  queueNames: readonly string[],
): Statement<{ readonly queue: string }, readonly string[]> {
  return {
    name: 'get_up',
    text: `
select q.queue, pg_advisory_unlock_shared(${sleepersLock(names, 'q.queue')})::text as up
  from ${queues}`,
    values: [JSON.stringify(queueNames)],
    input: queueNames,
  }
}

/** Sends a word to ourselves, to learn whether it arrives. Not when the notification queue is half full: COMMIT fails on a full one. */
export function sendWord(channel: string): Statement<{ readonly sent: string }, string> {
  return {
    name: 'send_word',
    text: `
select 'sent' as sent
  from (select pg_notify($1::text, '') as word where pg_notification_queue_usage() < 0.5) as w`,
    values: [channel],
    input: channel,
  }
}
