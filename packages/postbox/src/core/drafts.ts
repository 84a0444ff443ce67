import { type DraftRules, type Envelope, fillIn, makeEnvelope } from './draft.ts'
import { OutboxError } from './errors.ts'
import type { Draft } from './message.ts'
import type { PublishOptions } from './publish-options.ts'
import { assertQueue } from './queue-name.ts'
import { show } from './show.ts'

/** What the caller asked to publish, as it was given. `options` for all, or by body. */
export interface BatchInput {
  readonly queue: string
  readonly bodies: readonly unknown[]
  readonly options: PublishOptions | ((body: never, index: number) => PublishOptions) | undefined
}

/** Validates and encodes the messages of a batch, in the order of `makeDraft`; options that are the same for all, once. An error names the body: `bodies[3]`. */
export async function makeDrafts(
  rules: DraftRules,
  { queue, bodies, options }: BatchInput,
): Promise<readonly Draft[]> {
  // An empty batch is checked like a full one: a wrong queue name must not pass on the days when there is nothing to send.
  assertQueue(queue, rules.queues)
  if (!Array.isArray(bodies)) {
    throw new OutboxError('OUTBOX_INVALID_BODY', `expected \`bodies\` to be an array, got ${show(bodies)}`)
  }
  let shared: Envelope | undefined
  const envelopeOf = (body: unknown, index: number): Envelope => {
    if (typeof options === 'function') return makeEnvelope(rules, queue, options(body as never, index))
    shared ??= makeEnvelope(rules, queue, options)
    return shared
  }
  const begin = (body: unknown, index: number): Draft | Promise<Draft> => {
    try {
      const draft = fillIn(rules, envelopeOf(body, index), body)
      return isMade(draft) ? draft : draft.catch((error) => failAt(index, error))
    } catch (error) {
      return failAt(index, error)
    }
  }
  // All are begun, and so read and encoded, before any is awaited: the caller may change what it passed meanwhile.
  const begun = Array.from(bodies, begin)
  return begun.every(isMade) ? begun : (await Promise.allSettled(begun)).map(draftOrThrow)
}

async function failAt(index: number, error: unknown): Promise<never> {
  throw OutboxError.at(`bodies[${index}]`, error)
}

/** Not told by `instanceof Promise`, see `fillIn`. */
function isMade(draft: Draft | Promise<Draft>): draft is Draft {
  return 'body' in draft
}

function draftOrThrow(ended: PromiseSettledResult<Draft>): Draft {
  if (ended.status === 'fulfilled') return ended.value
  throw ended.reason
}
