import { advancing, type Batch, type BatchRow, choosing, progress } from './batch-of-operation.ts'
import { binder } from './dead-letters.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

/**
 * Deletes the oldest dead letters that an operation has left, and writes how far it has come: both or neither. The operation's row is locked by the
 * same transaction before (`lockOperation`). Those that others have locked are stepped over: somebody may be replaying them.
 */
export function discardDeadLetters(names: Names, batch: Batch): Statement<BatchRow, Batch> {
  const { bind, values } = binder()
  const columns = { moved: 'dead_seq as seq', quarantined: 'seq' }
  const changed = '((select count(*) from gone_moved) + (select count(*) from gone_quarantined))'
  return {
    name: 'discard_dead_letters',
    text: `
with ${choosing(names, batch, { bind, columns })}, gone_moved as (
  delete from ${names.dead}
   where dead_seq = any(array(select seq from locked_moved))
  returning 1
), gone_quarantined as (
  delete from ${names.messages}
   where seq = any(array(select seq from locked_quarantined))
  returning 1
), ${advancing(names, batch, { bind, changed, conflicts: '0', lastDueAt: 'null::timestamptz', limit: 'null::bigint' })}
select ${progress}
  from advanced`,
    values,
    input: batch,
  }
}
