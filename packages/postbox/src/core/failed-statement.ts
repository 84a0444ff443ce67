import { sqlState, sqlStateOf } from './sql-state.ts'

// What may pass by itself, or fails whatever the rows are: connections (08), transaction states (25: a server that became read-only),
// logins, databases and schemas (28, 3D, 3F: a password that is being changed), conflicts (40), missing tables and rights (42), resources (53), locks (55), interventions (57), the system (58, XX).
const passingClasses: readonly string[] = [
  '08',
  '25',
  '28',
  '3D',
  '3F',
  '40',
  '42',
  '53',
  '55',
  '57',
  '58',
  'F0',
  'XX',
]

/** Whether a statement failed because of one of its rows, and the others would go through without it: bad data, a constraint, a trigger. */
export function isDataError(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state !== null && !passingClasses.includes(state.slice(0, 2))
}

// Connection lost (08), server shutting down or session terminated (57P): the statement may have been carried out before.
const lostAnswerClasses: readonly string[] = ['08', '57']

/** Whether a statement that failed may have been carried out all the same: its answer was lost, not its work refused. */
export function isOutcomeUnknown(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state === null || (lostAnswerClasses.includes(state.slice(0, 2)) && state !== sqlState.queryCanceled)
}

/** Whether the next statement should go elsewhere: the connection is broken, or it leads to a server that no longer takes writes. */
export function needsNewConnection(error: unknown): boolean {
  return isOutcomeUnknown(error) || sqlStateOf(error) === sqlState.readOnlyTransaction
}

/** What a statement writes, as far as it matters to whether it is worth a second try. `arming`: follow-ons that are timers. */
export type Writing = 'rows' | 'named' | 'follow-ons' | 'arming' | 'burials'

/**
 * Whether waiting would not help: a row is to blame, or what goes with it. A burial is refused by dead letters that are missing, or others
 * than they were; follow-ons, where we may not insert; the name of a timer, by somebody who is about to take it. Any other lock, that of a
 * migration say, is soon given up.
 */
export function isRefused(error: unknown, writing: Writing): boolean {
  if (isDataError(error)) return true
  const publishes = writing === 'follow-ons' || writing === 'arming'
  const takesNames = writing === 'named' || writing === 'arming'
  return (
    (writing === 'burials' && isWholesale(error)) ||
    (publishes && sqlStateOf(error) === sqlState.insufficientPrivilege) ||
    (takesNames && isLockTimeout(error))
  )
}

/** Whether it fails for every row alike, so that there is no use in looking for the one that is to blame: missing tables and rights. */
export function isWholesale(error: unknown): boolean {
  return sqlStateOf(error)?.startsWith('42') === true
}

/** Whether somebody held a lock for longer than the statement may wait. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === sqlState.lockNotAvailable
}
