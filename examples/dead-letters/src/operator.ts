// What operators do: from a script, or behind a page of yours.
import type { DeadLetter, DeadLetterFilter, DeadLetters, Outbox, ReplayAllOutcome } from 'postbox'

/** All of them, a page at a time: nothing is skipped or repeated, whatever dies meanwhile. */
export async function* everyDeadLetter(
  deadLetters: DeadLetters,
  filter: DeadLetterFilter,
): AsyncGenerator<DeadLetter> {
  let after: string | undefined
  do {
    const page = await deadLetters.list({ ...filter, limit: 100, ...(after !== undefined && { after }) })
    yield* page.items
    after = page.next ?? undefined
  } while (after !== undefined)
}

/** Looks first, and does not begin when it would be more than somebody expected. */
export async function replayMended(
  deadLetters: DeadLetters,
  filter: DeadLetterFilter,
  { by, atMost, signal }: { by: string; atMost: number; signal?: AbortSignal },
): Promise<ReplayAllOutcome> {
  const { matched, groups, sample } = await deadLetters.replayAll(filter, { by, dryRun: true })
  if (matched.count > atMost)
    throw new Error(`${matched.count} match, such as ${sample[0]?.id}: ${JSON.stringify(groups)}`)
  return deadLetters.replayAll(filter, { by, perSecond: 50, signal })
}

/** For a cron job: how long things are kept is the application's to know. */
export async function forgetOldOnes(deadLetters: DeadLetters): Promise<number> {
  const { purged } = await deadLetters.purge({ olderThanMs: 90 * 24 * 3_600_000 })
  return purged
}

/** While it is mended nothing more is tried, so nothing more dies. When mending fails the queue stays paused: somebody has to look. */
export async function mendWhilePaused(
  outbox: Pick<Outbox, 'pause' | 'resume'>,
  { queue, by, mend }: { queue: string; by: string; mend(): void | Promise<void> },
): Promise<void> {
  const pause = await outbox.pause(queue, { by })
  if (!pause.paused) throw new Error(`${pause.by} paused it at ${pause.at.toISOString()}: ask first`)
  await mend()
  await outbox.resume(queue, { by })
}
