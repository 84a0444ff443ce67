import { type DraftRules, makeDraft, type Publication } from './draft.ts'
import type { Draft } from './message.ts'
import { type PublishRules, publishThrough } from './middleware.ts'

/**
 * A message that is written later, with the end of another: checked now, and through the middleware, for which it is a publish like any
 * other. Its receipt has no `seq` yet. null: a middleware kept it back.
 */
export async function draftFollowOn(
  rules: DraftRules & PublishRules,
  publication: Publication,
): Promise<Draft | null> {
  const { queue, body } = publication
  const drafts = [await makeDraft(rules, publication)]
  let kept: Draft | null = null
  await publishThrough(rules, { queue, bodies: [body], drafts }, async (given) => {
    kept = given[0] ?? null
    return given.map(({ id }) => ({ id, seq: '' }))
  })
  return kept
}
