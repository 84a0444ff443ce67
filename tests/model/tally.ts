// What a sequence really did: one in which nothing meets proves nothing.
import { unreachable } from '../../packages/postbox/src/core/unreachable.ts'
import { waitingFor } from './publishing.ts'
import type { Expected } from './sequence.ts'
import { orderEffects, orderEffectsOf } from './tally-order.ts'
import { type Draft, hoursFrom, type Message, type Settled, type State, type Step } from './terms.ts'

/** Everything that has to happen, again and again. */
export const effects = [
  ...['published', 'timer kept', 'timer replaced', 'publish rolled back', 'id published again'],
  ...['claimed fresh', 'claimed due', 'timer fired', 'claimed after a lease ended', 'left for want of room'],
  ...['claimed a suspect', 'claimed of an older generation', 'left for newer code'],
  ...['ack', 'retry', 'snooze', 'release', 'bury', 'quarantine', 'extend', 'count'],
  ...['ack refused', 'retry refused', 'snooze refused', 'release refused', 'bury refused'],
  ...[
    'quarantine refused',
    'extend refused',
    'count refused',
    'settled after its lease ended',
    'died without a run',
  ],
  'failed again, hours later',
  ...['name taken back', 'name taken by another', 'name not asked for', 'two for one name'],
  ...[
    'follow-on published',
    'follow-on of a lost lease',
    'follow-on kept a timer',
    'follow-on replaced a timer',
  ],
  ...['follow-ons of one name', 'lease forgotten in a crash'],
  ...['cancelled', 'cancel found it in flight', 'cancel found nothing', 'cancel rolled back'],
  ...['replayed from the dead letters', 'replayed from the quarantine', 'replay met its timer'],
  ...['replay found nothing', 'replay chose the newest', 'history dropped'],
  ...orderEffects,
] as const

export type Effect = (typeof effects)[number]

/** Where dead letters are kept in place nothing is moved, so nothing comes back from there. */
export const effectsOfMoving: readonly Effect[] = [
  ...(['bury', 'bury refused', 'replayed from the dead letters'] as const),
  ...(['skipped with one waiting', 'skipped with none waiting'] as const),
]

export function effectsOf(expected: Expected): readonly Effect[] {
  return [...plainEffectsOf(expected), ...orderEffectsOf(expected)]
}

function plainEffectsOf(expected: Expected): readonly Effect[] {
  const { before, step } = expected
  switch (step.kind) {
    case 'publish':
      return published(expected, step)
    case 'claim':
      return claimed(expected, step)
    case 'settle':
      return [...settled(expected, step), ...followedOn(expected, step)]
    case 'cancel':
      return cancelled(expected, step)
    case 'replay':
      return replayed(expected, step)
    case 'crash':
      return before.given.flatMap(({ worker, isInHand }) =>
        worker === step.worker && isInHand ? 'lease forgotten in a crash' : [],
      )
    // See tally-order.ts.
    case 'claimInOrder':
    case 'join':
    case 'resumeKey':
    case 'skipKey':
    case 'listKeys':
    case 'pause':
    case 'resume':
    case 'pass':
      return []
    default:
      return unreachable(step)
  }
}

type Of<Kind extends Step['kind']> = Step & { readonly kind: Kind }

function published({ before, answer }: Expected, { drafts, ending }: Of<'publish'>): readonly Effect[] {
  const receipts = answer.kind === 'published' ? answer.receipts : []
  const landed = receipts.map((receipt): Effect => {
    if (receipt === null) return 'timer kept'
    if (receipt.place === null) return 'publish rolled back'
    return receipt.place < before.nextPlace ? 'timer replaced' : 'published'
  })
  return [
    ...landed,
    ...drafts.flatMap(({ id, content }) =>
      id !== content && ending !== 'rollback' ? 'id published again' : [],
    ),
  ]
}

function claimed({ before, after, answer }: Expected, step: Of<'claim'>): readonly Effect[] {
  const { wanted, generation } = step
  const found = answer.kind === 'claimed' ? answer.found : []
  const messages = found.flatMap((one) => one.messages)
  const isLeft = ({ queue, lease, dueAt }: Message): boolean =>
    wanted.some((one) => one.queue === queue && one.after === 0 && one.dueFrom === null) &&
    (lease === null || lease.until < after.now) &&
    (dueAt === null || dueAt <= after.now)
  return [
    ...messages.map(({ dueAt }) => (dueAt === null ? 'claimed fresh' : 'claimed due')),
    ...messages.flatMap(({ timer }) => (timer === null ? [] : 'timer fired')),
    ...messages.flatMap(({ place }) => (at(before, place)?.lease ? 'claimed after a lease ended' : [])),
    ...messages.flatMap(({ isSuspect }) => (isSuspect ? 'claimed a suspect' : [])),
    ...messages.flatMap((message) =>
      (message.generation ?? Number.POSITIVE_INFINITY) < (generation ?? 0)
        ? 'claimed of an older generation'
        : [],
    ),
    ...after.messages.filter(isLeft).map((message) => {
      const isNewer = generation !== null && (message.generation ?? generation) > generation
      return isNewer ? 'left for newer code' : 'left for want of room'
    }),
  ]
}

function settled({ before, after, answer }: Expected, step: Of<'settle'>): readonly Effect[] {
  const { write } = step
  const written = answer.kind === 'settled' ? answer.places : []
  const effects = step.settled.flatMap(({ place }): Effect | Effect[] => {
    const message = at(before, place)
    if (!written.includes(place) || message === undefined) return `${write.kind} refused`
    const isLate = message.lease!.until < after.now
    const isSilent = 'hasRun' in write && !write.hasRun
    return [
      write.kind,
      ...(isLate ? ['settled after its lease ended' as const] : []),
      ...(isSilent ? ['died without a run' as const] : []),
      ...(write.kind === 'retry' && isLongAgo(after, message.firstAttemptAt)
        ? ['failed again, hours later' as const]
        : []),
      ...('takesNames' in write ? nameOf(message, at(after, place)!, write.takesNames) : []),
    ]
  })
  return [...effects, ...namesakes(before, step, written)]
}

function isLongAgo({ now }: State, time: number | null): boolean {
  return time !== null && hoursFrom(now, time) < 0
}

/** Two of one statement that want the same name back. */
function namesakes(before: State, { write }: Of<'settle'>, written: readonly number[]): readonly Effect[] {
  if (!('takesNames' in write && write.takesNames)) return []
  const timers = written.flatMap((place) => {
    const { queue, firedTimer } = at(before, place)!
    return firedTimer === null || waitingFor(before, queue, firedTimer) ? [] : `${queue} ${firedTimer}`
  })
  return new Set(timers).size < timers.length ? ['two for one name'] : []
}

function nameOf({ firedTimer }: Message, { timer }: Message, takesNames: boolean): Effect[] {
  if (firedTimer === null) return []
  if (!takesNames) return ['name not asked for']
  return [timer === null ? 'name taken by another' : 'name taken back']
}

function followedOn({ before, answer }: Expected, step: Of<'settle'>): readonly Effect[] {
  const places = answer.kind === 'settled' ? answer.places : []
  const isWritten = ({ place }: Settled): boolean => places.includes(place)
  const lost = step.settled.filter((one) => !isWritten(one)).flatMap(({ followOns }) => followOns)
  const drafts = step.settled.filter(isWritten).flatMap(({ followOns }) => followOns)
  const isRival = (draft: Draft): boolean =>
    draft.timer !== null &&
    drafts.some((other) => other !== draft && other.queue === draft.queue && other.timer === draft.timer)
  return [
    ...lost.map(() => 'follow-on of a lost lease' as const),
    ...drafts.flatMap((draft) => (isRival(draft) ? 'follow-ons of one name' : [])),
    ...drafts.map((draft): Effect => {
      if (waitingFor(before, draft.queue, draft.timer) === undefined) return 'follow-on published'
      return draft.conflict === 'keep' ? 'follow-on kept a timer' : 'follow-on replaced a timer'
    }),
  ]
}

function cancelled({ before, answer }: Expected, { queue, timer, ending }: Of<'cancel'>): readonly Effect[] {
  if (answer.kind === 'cancelled' && answer.isCancelled)
    return [ending === 'rollback' ? 'cancel rolled back' : 'cancelled']
  const isInFlight = before.messages.some(
    (message) => message.queue === queue && message.firedTimer === timer,
  )
  return [isInFlight ? 'cancel found it in flight' : 'cancel found nothing']
}

function replayed({ before, after, answer }: Expected, { id }: Of<'replay'>): readonly Effect[] {
  const result = answer.kind === 'replayed' ? answer.result : null
  if (result === 'not_found') return ['replay found nothing']
  if (result === 'timer_conflict') return ['replay met its timer']
  const isMoved = after.dead.length < before.dead.length
  const candidates = [...before.dead, ...before.messages.filter(({ death }) => death !== null)]
  const isDropped = after.messages.some(
    (message) => !before.messages.includes(message) && message.history!.dropped > 0,
  )
  return [
    isMoved ? 'replayed from the dead letters' : 'replayed from the quarantine',
    ...(candidates.filter((one) => one.id === id).length > 1 ? ['replay chose the newest' as const] : []),
    ...(isDropped ? ['history dropped' as const] : []),
  ]
}

function at({ messages }: State, place: number): Message | undefined {
  return messages.find((message) => message.place === place)
}
