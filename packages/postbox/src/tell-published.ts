import type { Logger } from './core/log.ts'
import type { Draft } from './core/message.ts'
import { hear, type OnEvent } from './hear.ts'
import { safeLogger } from './safe-logger.ts'

interface Heard {
  readonly onEvent: OnEvent | undefined
  readonly logger: Logger | false | undefined
}

export type Tell = typeof tellPublished

/** Sends a statement to the database and tells what became of it: not of what was refused before. Ends as the statement does. */
export async function tellPublished<Row>(
  { onEvent, logger }: Heard,
  drafts: readonly Draft[],
  send: () => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const begun = performance.now()
  const sending = send()
  const [ended] = await Promise.allSettled([sending])
  const durationMs = performance.now() - begun
  const queue = drafts[0]?.queue ?? ''
  const bytes = drafts.reduce((sum, { body }) => sum + body.byteLength, 0)
  const told = { kind: 'published', queue, bytes, durationMs } as const
  const outcome =
    ended.status === 'fulfilled'
      ? { count: ended.value.length }
      : { count: 0, error: ended.reason as unknown }
  hear(onEvent, { ...told, ...outcome }, safeLogger(logger))
  return sending
}
