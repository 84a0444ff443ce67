import type { LogLevel } from './log.ts'

/** What a warning is about, and how loudly it is said. */
interface PrintedWarning {
  readonly level: LogLevel
  readonly when: string
}

/** Every code that a warning may have. */
export const warningCatalogue = {
  no_subscribers: { level: 'warn', when: 'It was started, and nobody subscribes to anything.' },
  order_mismatch: {
    level: 'warn',
    when: "A queue is in the order of its keys, and this outbox has it without `order: 'key'`: nothing of it is claimed here.",
  },
  pool_too_small: {
    level: 'warn',
    when: 'The pool has too few connections to keep one for listening: messages are found by polling.',
  },
  cannot_listen: { level: 'info', when: 'The client cannot listen: messages are found by polling.' },
  no_attempt_limit: {
    level: 'warn',
    when: 'A retry policy allows any number of runs: a message may fail for ever.',
  },
  reject_with_retry: {
    level: 'warn',
    when: 'A retry policy is given where errors reject: it is asked only after `context.retry()`.',
  },
  idle_connection_lost: { level: 'warn', when: 'A connection of the pool broke while nobody used it.' },
  renewal_failed: { level: 'warn', when: 'Leases could not be renewed. It is tried again before they end.' },
  count_failed: {
    level: 'warn',
    when: 'The delivery of a message that has to be run alone could not be counted. It is given back, and claimed again.',
  },
  policy_failed: {
    level: 'warn',
    when: 'A retry policy threw, or answered with something that is no delay: the message is dead.',
  },
  classify_failed: {
    level: 'warn',
    when: '`classify` threw, or answered with something that is no verdict. The usual rules decided.',
  },
  describe_failed: {
    level: 'warn',
    when: '`describeError` threw, or answered with something that is no text. A fixed sentence is stored instead of the error.',
  },
  thrown_after_decision: {
    level: 'warn',
    when: 'A handler threw after it had decided by its context. What it decided stands.',
  },
} satisfies Readonly<Record<string, PrintedWarning>>

export type WarningCode = keyof typeof warningCatalogue
