import type { readIsolation, setReadCommitted } from '../../sql/isolation.ts'
import { migrations } from '../../sql/migrations/index.ts'
import type { lockForMigrating, readAppliedSteps, readSchemaState } from '../../sql/schema-state.ts'
import { bury, findThoseBuried, quarantine } from './burying.ts'
import { claim, extend, holds } from './claiming.ts'
import { countQueues } from './counting.ts'
import { count, get, list } from './dead-letters.ts'
import { cancel, insert, isMarkThere, peek, setMark } from './inserting.ts'
import type { Operation, Work } from './operation.ts'
import { replay } from './replaying.ts'
import { acknowledge, acknowledgeWithFollowOns, giveBack, reschedule, snooze } from './settling.ts'
import { clear, rise, word } from './waking.ts'

type AnyOperation = (work: Work, input: never) => readonly unknown[]

const isolation: Operation<() => typeof readIsolation> = () => [{ isolation: 'read committed' }]
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
  extend_leases: extend,
  holds_leases: holds,
  delete_acked: acknowledge,
  delete_with_follow_ons: acknowledgeWithFollowOns,
  reschedule_retried: reschedule,
  snooze_messages: snooze,
  release_leases: giveBack,
  bury_dead: bury,
  quarantine_dead: quarantine,
  find_buried: findThoseBuried,
  list_dead_letters: list,
  count_dead_letters: count,
  get_dead_letter: get,
  replay_dead_letter: replay,
  count_messages: countQueues,
  lie_down: clear,
  check_clear: clear,
  get_up: rise,
  send_word: word,
  read_isolation: isolation,
  'set transaction isolation level read committed': nothing,
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
] satisfies (keyof typeof byName)[])
