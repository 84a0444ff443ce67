/** Places where a test can kill, cut or hold the process, in the order of a message's way. */
export type FailpointName =
  | 'before_listen'
  | 'after_listen'
  | 'before_sleep'
  | 'before_claim'
  | 'claim_sent'
  | 'after_claim'
  | 'before_handler'
  | 'transaction_fenced'
  | 'transaction_worked'
  | 'before_commit'
  | 'commit_sent'
  | 'after_handler'
  | 'before_flush'
  | 'flush_sent'
  | 'after_flush'
  | 'before_renewal'
  | 'renewal_sent'
  | 'after_renewal'

/** Absent outside tests, where a place costs one comparison: `if (failpoint) await failpoint.reach('after_claim')`. */
export interface Failpoint {
  reach(name: FailpointName): Promise<void>
}

/** The answer to a statement that was sent, with a place to stop while it is under way. */
export async function sent<T>(
  answer: Promise<T>,
  failpoint: Failpoint | undefined,
  name: FailpointName,
): Promise<T> {
  if (failpoint === undefined) return answer
  const [value] = await Promise.all([answer, failpoint.reach(name)])
  return value
}
