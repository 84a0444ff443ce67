import type { Database } from './adapters/executor.ts'
import { draftFollowOn } from './core/follow-on-draft.ts'
import type { OutboxSettings } from './core/outbox-options.ts'
import { createLifecycle, type Lifecycle } from './lifecycle.ts'
import type { Publishing } from './publish.ts'
import type { Registry, RunnerParts } from './runtime/runner.ts'
import type { Internals } from './runtime/works.ts'
import { safeLogger } from './safe-logger.ts'
import { createTelling } from './telling.ts'

/** All that an outbox at work is made of. */
export interface LifecycleParts {
  readonly settings: OutboxSettings
  readonly outbox: Publishing
  readonly registry: Registry
  readonly database: () => Database
  readonly listenDatabase: () => Database
  readonly internals: Internals | undefined
}

/** Loaded when an outbox is first started: one that only publishes carries none of it. */
export function assembleLifecycle(given: LifecycleParts): Lifecycle {
  const { settings, outbox, registry } = given
  const { onEvent, wake, deadLetters, describeError, middleware, stopTimeoutMs } = settings
  const { names } = outbox
  const log = safeLogger(settings.logger)
  const telling = createTelling({ onEvent, logger: log })
  const parts = (): RunnerParts => ({
    database: given.database(),
    listenDatabase: given.listenDatabase(),
    names,
    wake,
    deadLetters,
    describeError,
    middleware,
    draft: (publication) => draftFollowOn(outbox, publication),
    telling,
    log,
    stopTimeoutMs,
    internals: given.internals,
  })
  return createLifecycle(registry, parts)
}
