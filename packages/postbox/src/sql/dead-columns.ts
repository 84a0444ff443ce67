/** What a dead letter keeps of its message as it is: columns that both tables have. */
export const keptColumns = [
  'id',
  'queue',
  'key',
  'body',
  'headers',
  'deliveries',
  'created_at',
  'generation',
  'failure_history',
] as const

/**
 * What its death makes of the message, in columns that both tables have, by the row `m` and the burial `s`. Only a run makes an attempt: a message
 * that was delivered too often without an outcome may never have been run to its end.
 */
export const deathColumns = {
  attempts: 's.attempts',
  first_attempt_at: `case when s.attempts > m.attempts then coalesce(m.first_attempt_at, now()) else m.first_attempt_at end`,
  last_attempt_at: `case when s.attempts > m.attempts then now() else m.last_attempt_at end`,
  failed_at: 'now()',
  failure_reason: 's.reason',
  last_error: 's.error',
} as const

/** What only a dead letter has; `timer_id`, because a claimed message keeps its timer's name elsewhere. */
export const deadColumns = {
  original_seq: 'm.seq',
  timer_id: 'coalesce(m.timer_id, m.fired_timer_id)',
} as const
