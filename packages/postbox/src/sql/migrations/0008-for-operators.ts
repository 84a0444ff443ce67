import { createReplayFunction, revokeReplayFunction } from '../replay-function.ts'
import { allTables, createStatusView } from '../status-view.ts'
import type { Migration } from './migration.ts'

/**
 * What people use who have a SQL client and no more rights than these: a view of all messages, a function that replays one. A change of either
 * needs a step that makes it anew, and so does a change of `replaySql`; a step that alters a column first has to drop the view.
 */
export const forOperators: Migration = {
  version: 8,
  name: 'a view and a function for operators',
  breaking: false,
  up: (names) => [
    createStatusView(names, allTables),
    createReplayFunction(names, { replace: false }),
    revokeReplayFunction(names),
  ],
}
