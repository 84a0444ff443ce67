import { draftFollowOn } from './core/follow-on-draft.ts'
import { createLifecycle, type Lifecycle } from './lifecycle.ts'
import type { RunnerParts } from './runtime/runner.ts'
import { safeLogger } from './safe-logger.ts'
import type { OutboxParts } from './seam.ts'
import { createTelling } from './telling.ts'

// biome-ignore lint/performance/noBarrelFile: loaded along with it, since the transactions of an ORM are for handlers only
export { openerOf } from './adapters/recognise-orm.ts'

/** Loaded when an outbox is first started: one that only publishes carries none of it. */
export function assembleLifecycle(parts: OutboxParts): Lifecycle {
  return createLifecycle(parts.registry, runnerPartsOf(parts))
}

/** What a runner is made of, asked at each start. */
export function runnerPartsOf({ settings, outbox, seam }: OutboxParts): () => RunnerParts {
  const { onEvent, wake, deadLetters, delivered, generation, describeError, middleware, stopTimeoutMs } =
    settings
  const { names } = outbox
  const log = safeLogger(settings.logger)
  const telling = createTelling({ onEvent, logger: log })
  return () => ({
    database: seam.database(),
    listenDatabase: seam.listenDatabase(),
    names,
    queues: outbox.queues,
    wake,
    deadLetters,
    generation,
    delivered,
    describeError,
    middleware,
    open: () => seam.opener(),
    draft: (publication) => draftFollowOn(outbox, publication),
    telling,
    log,
    stopTimeoutMs,
    internals: seam.internals,
  })
}
