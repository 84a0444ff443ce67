import { OutboxError } from './errors.ts'
import type { DeliveryContext } from './handler.ts'
import { contentTypeHeader, correlationIdHeader, type Headers, readHeaders } from './headers.ts'
import type { Draft, Message, Receipt } from './message.ts'
import { show } from './show.ts'
import { isRecord } from './validate.ts'
import { withHeaders } from './with-headers.ts'

/** One call of publish, publishMany, publishNow or context.publish. */
export interface PublishCall {
  readonly queue: string
  readonly bodies: readonly unknown[]
}

/** One run of a handler: of one message, or of a batch. */
export interface Delivery {
  readonly handler: string
  readonly queue: string
  readonly messages: readonly Message[]
  readonly context: DeliveryContext
}

/**
 * Wraps publishing and handlers, like the skins of an onion: the first one given is the outermost. What it throws fails the publish or
 * the delivery. It may answer without calling `next`: then nothing is published, or the handler is not run and the message acknowledged.
 * `next` may be called once.
 */
export interface Middleware {
  /**
   * Once for each call, after what is published was checked and before anything is written. `next(headers)` adds headers to every message
   * of the call; the caller's own win. The answer has a receipt for each body; null: nothing was written for it.
   */
  readonly publish?: (
    call: PublishCall,
    next: (headers?: Headers) => Promise<readonly (Receipt | null)[]>,
  ) => Promise<readonly (Receipt | null)[]>
  readonly consume?: (delivery: Delivery, next: () => Promise<void>) => unknown
}

/** One layer: `next` runs what is inside it, with something to add or nothing. */
export type Skin<Call, Extra, Answer> = (call: Call, next: (extra?: Extra) => Promise<Answer>) => unknown

/** What all layers have added, the outermost first. */
type Innermost<Extra, Answer> = (extras: readonly Extra[]) => Promise<Answer>

/**
 * Runs `innermost` inside the skins, the first of which is the outermost; resolves with what that one answers. Nothing goes on behind the
 * caller's back: what a skin began by `next` is waited for, whether or not the skin does; and when it fails and the skin has not so much as
 * listened, that is the failure of the whole: a forgotten `await` must not acknowledge what failed.
 */
export async function compose<Call, Extra, Answer>(
  skins: readonly Skin<Call, Extra, Answer>[],
  call: Call,
  innermost: Innermost<Extra, Answer>,
): Promise<unknown> {
  const enter = async (index: number, extras: readonly Extra[]): Promise<unknown> => {
    const skin = skins[index]
    if (skin === undefined) return innermost(extras)
    let isOpen = true
    const begun: Heard<unknown>[] = []
    const next = (extra?: Extra): Promise<Answer> => {
      if (!isOpen) throw nextAgain()
      isOpen = false
      const inner = heard(enter(index + 1, extra === undefined ? extras : [...extras, extra]))
      begun.push(inner)
      return inner.promise as Promise<Answer>
    }
    const [answer] = await Promise.allSettled([(async () => skin(call, next))()])
    isOpen = false
    const [inner] = begun
    const [inside] = await Promise.allSettled([inner?.original])
    if (answer.status === 'rejected') throw answer.reason
    if (inside.status === 'rejected' && inner?.isHeard === false) throw inside.reason
    return answer.value
  }
  return enter(0, [])
}

/** What a skin began by `next`. `isHeard`: somebody takes note of its failure: awaits it, returns it, or catches it. */
interface Heard<T> {
  readonly promise: Promise<T>
  readonly original: Promise<T>
  isHeard: boolean
}

function heard<T>(original: Promise<T>): Heard<T> {
  const promise = new Listened<T>((resolve) => resolve(original))
  const one: Heard<T> = { original, promise, isHeard: false }
  promise.heard = () => {
    one.isHeard = true
  }
  quieten(promise)
  return one
}

/**
 * Tells when its failure is taken note of, by itself or by what is made of it: `next().then(measure)` leaves it to whoever takes that. A
 * native promise would be awaited without a call of its `then`; one of another class is not.
 */
class Listened<T> extends Promise<T> {
  heard: () => void = () => {}
  // biome-ignore lint/suspicious/noThenProperty: that is how one hears that somebody listens
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const made = super.then(onFulfilled, onRejected) as Listened<A | B>
    made.heard = this.heard
    if (onRejected) this.heard()
    else quieten(made)
    return made
  }
  /** It passes the failure on, though it is asked for by a `then` that takes both ends. */
  override finally(onFinally?: (() => void) | null): Promise<T> {
    const { heard } = this
    this.heard = () => {}
    const made = super.finally(onFinally) as Listened<T>
    this.heard = made.heard = heard
    quieten(made)
    return made
  }
}

/** A failure that nobody takes note of is the whole's, and must not end the process besides. */
function quieten(promise: Promise<unknown>): void {
  Promise.prototype.then.call(promise, undefined, () => {})
}

/** The layers of one kind, bound to the object they belong to. */
export function skinsOf<K extends keyof Middleware>(
  middleware: readonly Middleware[],
  kind: K,
): readonly NonNullable<Middleware[K]>[] {
  return middleware.flatMap((one) => (one[kind] === undefined ? [] : [one[kind].bind(one) as never]))
}

/** What publishing knows of its middleware. */
export interface PublishRules {
  readonly middleware: readonly Middleware[]
  /** Of all headers of a message, as for one body. */
  readonly maxBodyBytes: number
}

/** Messages of one call, which were checked; `bodies` as they were given. */
export interface Publishable extends PublishCall {
  readonly drafts: readonly Draft[]
}

export type Receipts = readonly (Receipt | null)[]

/** Publishes through the middleware: `write` gets the drafts with the headers that were added. */
export async function publishThrough(
  { middleware, maxBodyBytes }: PublishRules,
  { queue, bodies, drafts }: Publishable,
  write: (drafts: readonly Draft[]) => Promise<Receipts>,
): Promise<Receipts> {
  const skins = skinsOf(middleware, 'publish')
  if (skins.length === 0) return write(drafts)
  const call = Object.freeze({ queue, bodies: Object.freeze([...bodies]) })
  const answer = await compose<PublishCall, Headers, Receipts>(skins, call, async (added) => {
    // Whoever is nearer to the caller wins: the outer one adds first.
    const layers = added.map(readAdded)
    return write(layers.reduce((all, layer) => withHeaders(all, layer, maxBodyBytes), drafts))
  })
  assertReceipts(answer, drafts.length)
  return answer
}

/** Checked like the caller's. What belongs to the message itself was the caller's to say. */
function readAdded(headers: Headers): ReadonlyMap<string, string> {
  const read = readHeaders(headers)
  const own = [contentTypeHeader, correlationIdHeader].find((name) => read.has(name))
  if (own === undefined) return read
  const sentence = `expected middleware to add headers of its own, got \`${own}\`, which belongs to the message: ${show(read.get(own))}`
  throw new OutboxError('OUTBOX_INVALID_HEADERS', sentence)
}

function assertReceipts(answer: unknown, count: number): asserts answer is Receipts {
  if (Array.isArray(answer) && answer.length === count && Array.from(answer, isReceipt).every(Boolean)) return
  const toBe = `to answer with an array of ${count}, a receipt or null for each body`
  throw new OutboxError('OUTBOX_INVALID_OPTION', `expected \`middleware\` ${toBe}, got ${show(answer)}`)
}

function isReceipt(value: unknown): boolean {
  return (
    value === null || (isRecord(value) && typeof value['id'] === 'string' && typeof value['seq'] === 'string')
  )
}

function nextAgain(): OutboxError {
  const sentence =
    'expected `middleware` to call `next` at most once, and before it answers, got another call'
  return new OutboxError('OUTBOX_INVALID_OPTION', sentence)
}
