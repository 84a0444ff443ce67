import type { readIsolation, setReadCommitted } from '../../sql/isolation.ts'
import { migrations } from '../../sql/migrations/index.ts'
import type { lockForMigrating, readAppliedSteps, readSchemaState } from '../../sql/schema-state.ts'
import type { tellQueues } from '../../sql/tell-queues.ts'
import { bury, discardThem, findThoseBuried, park, quarantine } from './burying.ts'
import { claim, claimFreshly, countOne, extend, holds } from './claiming.ts'
import { countQueues } from './counting.ts'
import { count, get, list, sample, survey } from './dead-letters.ts'
import { getKept, listKept, purgeKept } from './delivering.ts'
import { discardBatch, discardOne, purge } from './discarding.ts'
import { forget as forgetHandled, markAsHandled, purgeOld } from './handling.ts'
import { cancel, insert, isMarkThere, peek, setMark } from './inserting.ts'
import { listBlocked, resume, skip } from './keys.ts'
import { forget, listAll, lock, start } from './operating.ts'
import type { Operation, Work } from './operation.ts'
import { claimOrdered, joinThem, register } from './ordered-claiming.ts'
import { pause, readAll, resume as resumeQueue } from './pausing.ts'
import { replay } from './replaying.ts'
import { replayBatch } from './replaying-many.ts'
import { acknowledge, acknowledgeWithFollowOns, giveBack, reschedule, snooze } from './settling.ts'
import { cancel as cancelStatement, current, doom, fence, patienceOf, statusOf } from './transacting.ts'
import { clear, rise, word } from './waking.ts'

type AnyOperation = (work: Work, input: never) => readonly unknown[]

const isolation: Operation<() => typeof readIsolation> = () => [{ isolation: 'read committed' }]
const tell: Operation<typeof tellQueues> = ({ tx }, queues) => {
  for (const queue of queues) tx.toldQueues.add(queue)
  return [{ told: queues.length }]
}
const nothing: Operation<() => typeof setReadCommitted> & Operation<typeof lockForMigrating> = () => []

/** There is nothing to make, and all of it is there: `migrate` finds its work done. */
const schemaState: Operation<typeof readSchemaState> = () => [
  { namespace: 'true', meta: 'true', messages: 'true', encoding: 'UTF8' },
]
const appliedSteps: Operation<typeof readAppliedSteps> = () =>
  migrations.map(({ version, breaking }) => ({ version: String(version), breaking: String(breaking) }))

const byName = {
  insert_message: insert,
  insert_messages: insert,
  cancel_timer: cancel,
  peek_pending: peek,
  mark_transaction: setMark,
  read_mark: isMarkThere,
  claim_messages: claim,
  claim_fresh: claimFreshly,
  claim_in_order: claimOrdered,
  join_keys: joinThem,
  count_delivery: countOne,
  extend_leases: extend,
  holds_leases: holds,
  fence_transaction: fence,
  read_transaction: current,
  restore_patience: patienceOf,
  read_transaction_status: statusOf,
  cancel_transaction: cancelStatement,
  doom_transaction: doom,
  delete_acked: acknowledge,
  delete_with_follow_ons: acknowledgeWithFollowOns,
  reschedule_retried: reschedule,
  snooze_messages: snooze,
  tell_queues: tell,
  release_leases: giveBack,
  bury_dead: bury,
  discard_dead: discardThem,
  quarantine_dead: quarantine,
  park_dead: park,
  find_buried: findThoseBuried,
  list_dead_letters: list,
  count_dead_letters: count,
  get_dead_letter: get,
  replay_dead_letter: replay,
  list_keys: listBlocked,
  resume_key: resume,
  skip_key: skip,
  mark_handled: markAsHandled,
  forget_handled: forgetHandled,
  purge_handled: purgeOld,
  replay_dead_letters: replayBatch,
  survey_dead_letters: survey,
  sample_dead_letters: sample,
  discard_dead_letter: discardOne,
  discard_dead_letters: discardBatch,
  purge_dead_letters: purge,
  start_operation: start,
  lock_operation: lock,
  forget_operation: forget,
  list_operations: listAll,
  list_delivered: listKept,
  get_delivered: getKept,
  purge_delivered: purgeKept,
  count_messages: countQueues,
  pause_queue: pause,
  resume_queue: resumeQueue,
  read_pauses: readAll,
  lie_down: clear,
  check_clear: clear,
  get_up: rise,
  send_word: word,
  read_isolation: isolation,
  'set transaction isolation level read committed': nothing,
  register_queues: register,
  read_schema_state: schemaState,
  read_applied_steps: appliedSteps,
  lock_for_migrating: nothing,
  ping: () => [{ pong: 1 }],
}

/** By the names of their statements. */
export const operations: ReadonlyMap<string, AnyOperation> = new Map(Object.entries(byName))

/** Those that wait for who is in their way. The others are impatient in Postgres, too, or step over what is locked. */
export const patient: ReadonlySet<string> = new Set([
  'insert_message',
  'insert_messages',
  'cancel_timer',
  'replay_dead_letter',
  'resume_key',
  'skip_key',
  'fence_transaction',
  'replay_dead_letters',
  'discard_dead_letter',
  'lock_operation',
  'pause_queue',
  'resume_queue',
] satisfies (keyof typeof byName)[])
