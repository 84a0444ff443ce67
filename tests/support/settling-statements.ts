// Every statement that settles messages, in each of its forms, with the same text wherever a value can be one.
import type { Conflict, Draft } from '../../packages/postbox/src/core/message.ts'
import { buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { deleteWithFollowOns } from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import { discardDead } from '../../packages/postbox/src/sql/discard-dead.ts'
import type { Names } from '../../packages/postbox/src/sql/names.ts'
import { quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import type { Wake } from '../../packages/postbox/src/sql/wake.ts'

export const wakes: readonly Wake[] = ['quiet', 'always', 'poll']
export const conflicts: readonly Conflict[] = ['none', 'keep', 'replace']
export const deliveredModes = ['delete', 'table'] as const

const followingModes = deliveredModes.flatMap((delivered) =>
  wakes.flatMap((wake) => conflicts.map((conflict) => [wake, conflict, delivered] as const)),
)

/** A draft that is this text all over. */
export function draftWith(text: string): Draft {
  return {
    id: text,
    queue: text,
    key: text,
    timerId: text,
    conflict: 'keep',
    body: Buffer.from(text),
    headers: { [text]: text },
    schedule: { kind: 'at', epochMs: 1_700_000_000_000 },
    generation: 1,
  }
}

/** For so many rows. */
export function settling(
  names: Names,
  text: string,
  count = 1,
): readonly Statement<{ readonly seq: string }>[] {
  const fences = Array.from({ length: count }, () => ({ seq: text, token: text, deliveriesBefore: 1 }))
  const retries = fences.map((fence) => ({ ...fence, delayMs: 1, error: text }))
  const burials = fences.map((fence) => ({ ...fence, reason: text, error: text, attempts: 1 }))
  const puttingBack = [false, true].flatMap((takeNames) => [
    rescheduleRetried(names, retries, takeNames),
    snoozeMessages(names, retries, takeNames),
    releaseLeases(names, fences, takeNames),
  ])
  const following = followingModes.map(([wake, conflict, delivered]) => {
    const settled = fences.map((fence) => ({ ...fence, followOns: [{ ...draftWith(text), conflict }] }))
    return deleteWithFollowOns(names, { settled, wake, delivered })
  })
  const acked = deliveredModes.map((delivered) => deleteAcked(names, fences, { delivered }))
  const noted = burials.map((burial) => ({ ...burial, isNoted: true }))
  const ending = [...acked, discardDead(names, noted)]
  for (const bury of [buryDead, quarantineDead]) ending.push(bury(names, burials), bury(names, noted))
  return [...ending, ...puttingBack, ...following]
}
