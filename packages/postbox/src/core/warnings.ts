import type { WarningEvent } from './events.ts'
import type { SubscribeSettings } from './subscribe-options.ts'

export type Warning = Pick<WarningEvent, 'code' | 'message' | 'fields'>

interface Subscribed {
  readonly name: string
  readonly queues: readonly string[]
  readonly settings: SubscribeSettings
  readonly run: { readonly kind: 'each' | 'batch' }
}

/** Options that are legal, and yet rarely meant. What is left at its default is never one of them. */
export function warningsOf({ name, queues, settings, run }: Subscribed): readonly Warning[] {
  const fields = { handler: name, queues }
  const { retry, ack } = settings
  const warnings: Warning[] = []
  if (retry === null) return warnings
  if (retry.maxAttempts === null) {
    const message =
      'the retry policy has no limit: a message that always fails is run for ever. Give it `maxAttempts` or `maxTotalMs`.'
    warnings.push({ code: 'no_attempt_limit', message, fields })
  }
  // A policy that does not say how many runs it allows is taken for one that retries. An error of a batch may be the fault of any
  // of its messages: there the policy is asked.
  if (ack === 'reject-on-error' && run.kind === 'each' && retry.maxAttempts !== 1) {
    const message =
      "`ack: 'reject-on-error'` buries a message at the first error: the retry policy is asked only after context.retry(). Give `ack: 'auto'` or `retry: noRetry()`."
    warnings.push({ code: 'reject_with_retry', message, fields })
  }
  return warnings
}
