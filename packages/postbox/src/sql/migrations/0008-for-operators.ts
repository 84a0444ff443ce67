import { createReplayFunction, revokeReplayFunction } from '../replay-function.ts'
import type { Migration } from './migration.ts'

/**
 * What people use who have a SQL client and no more rights than these: a function that replays a message. The view of all messages is made
 * by the last step that changed it, 9, and the function is replaced there. A change of either needs a step that makes it anew, and so does a
 * change of `replaySql`; a step that alters a column first has to drop the view.
 */
export const forOperators: Migration = {
  version: 8,
  name: 'a view and a function for operators',
  breaking: false,
  up: (names) => [createReplayFunction(names, { replace: false }), revokeReplayFunction(names)],
}
