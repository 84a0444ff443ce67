// What a sequence did to the order of keys, and while queues were paused.
import { isFree, isOurs, isPaused } from './claiming.ts'
import { isFirst, lineOf, nextOf } from './ordering.ts'
import type { Expected } from './sequence.ts'
import { type Message, orderedQueue, type State, type Step } from './terms.ts'

export const orderEffects = [
  ...[
    'claimed a first',
    'claimed right behind it',
    'first left for want of room',
    'next of a key left for want of room',
    'went on with a key',
  ],
  ...['found a key by its name', 'claimed a first after a lease ended', 'told who died before'],
  ...[
    'waited for a first that is held',
    'waited for a retry',
    'waited for a parked one',
    'waited for newer code',
  ],
  ...['joined its key', 'joined behind others', 'timer left its place', 'timer cancelled in its place'],
  ...[
    'park',
    'park refused',
    'skipped with one waiting',
    'skipped with none waiting',
    'acked with one waiting',
  ],
  ...['key resumed', 'resumed without its name', 'key skipped', 'nothing parked'],
  ...['parked key listed', 'retrying key listed'],
  ...['landed in place', 'landed behind its key', 'landed behind its key later', 'replayed without its name'],
  ...['paused', 'paused already', 'resumed', 'resumed already'],
  ...['claim of a paused queue', 'published while paused', 'settled while paused', 'came due while paused'],
] as const

export type OrderEffect = (typeof orderEffects)[number]

export function orderEffectsOf(expected: Expected): readonly OrderEffect[] {
  const { step } = expected
  switch (step.kind) {
    case 'claimInOrder':
      return claimed(expected, step)
    case 'join':
      return joined(expected)
    case 'publish':
      return published(expected, step)
    case 'settle':
      return settled(expected, step)
    case 'cancel':
      return cancelled(expected)
    case 'replay':
      return replayed(expected)
    case 'resumeKey':
    case 'skipKey':
      return decided(expected, step)
    case 'listKeys':
      return listed(expected)
    case 'claim':
      return step.wanted.flatMap(({ queue }) => paused(expected, queue, 'claim of a paused queue'))
    case 'pause':
    case 'resume':
      return changed(expected, step)
    default:
      return []
  }
}

type Of<Kind extends Step['kind']> = Step & { readonly kind: Kind }

/** The effect for each of so many. */
function each<T>(items: readonly T[], effect: OrderEffect): readonly OrderEffect[] {
  return items.map(() => effect)
}

function claimed(
  expected: Expected,
  { wanted, generation, choice }: Of<'claimInOrder'>,
): readonly OrderEffect[] {
  const { before, after } = expected
  if (isPaused(before, orderedQueue))
    return [
      'claim of a paused queue',
      ...each(
        own(before).filter(({ dueAt }) => dueAt !== null && dueAt <= after.now),
        'came due while paused',
      ),
    ]
  const taken = own(before).filter(({ place }) => choice.places.includes(place))
  const firsts = taken.filter((message) => isFirst(before, message))
  const isBelow = ({ dueAt, place }: Message): boolean => dueAt === null && place <= wanted.after
  const isEnded = ({ key }: Message): boolean => wanted.ends.some((end) => end.key === key)
  const left = own(after).filter((one) =>
    waitsFor(after, one, generation).includes('first left for want of room'),
  )
  return [
    ...each(firsts, 'claimed a first'),
    ...each(taken.slice(firsts.length), 'claimed right behind it'),
    ...each(
      firsts.filter((one) => isBelow(one) && isEnded(one)),
      'went on with a key',
    ),
    ...each(
      firsts.filter((one) => isBelow(one) && !isEnded(one)),
      'found a key by its name',
    ),
    ...each(
      firsts.filter(({ lease }) => lease !== null),
      'claimed a first after a lease ended',
    ),
    ...each(
      taken.filter(({ afterDead }) => afterDead !== null),
      'told who died before',
    ),
    ...each(left.filter(isEnded), 'next of a key left for want of room'),
    ...own(after).flatMap((message) => waitsFor(after, message, generation)),
  ]
}

function own({ messages }: State): readonly Message[] {
  return messages.filter(({ queue }) => queue === orderedQueue)
}

/** What those that could be had, were they the first, wait for. */
function waitsFor(state: State, message: Message, generation: number | null): readonly OrderEffect[] {
  const isReady = message.death === null && !message.isToJoin && isFree(state, message)
  if (!isReady || (message.dueAt ?? 0) > state.now) return []
  const [first] = message.key === null ? [] : lineOf(state, message.key)
  if (first === undefined || first === message)
    return isOurs(message, generation) ? ['first left for want of room'] : []
  if (first.isParked) return ['waited for a parked one']
  if (!isFree(state, first)) return ['waited for a first that is held']
  if ((first.dueAt ?? 0) > state.now) return ['waited for a retry']
  return isOurs(first, generation) ? [] : ['waited for newer code']
}

function joined({ before, after }: Expected): readonly OrderEffect[] {
  const places = own(after).filter(({ place }) => place >= before.nextPlace)
  return [
    ...each(places, 'joined its key'),
    ...each(
      places.filter((message) => !isFirst(after, message)),
      'joined behind others',
    ),
  ]
}

function published({ before, after }: Expected, { drafts }: Of<'publish'>): readonly OrderEffect[] {
  const left = own(before).filter(
    ({ place, key, isToJoin }) =>
      key !== null && !isToJoin && after.messages.find((one) => one.place === place)?.isToJoin,
  )
  return [
    ...each(left, 'timer left its place'),
    ...drafts.flatMap(({ queue }) => paused({ before }, queue, 'published while paused')),
  ]
}

function settled({ before, answer }: Expected, { settled, write }: Of<'settle'>): readonly OrderEffect[] {
  const places = answer.kind === 'settled' ? answer.places : []
  const written = before.messages.filter(({ place }) => places.includes(place))
  const keyed = written.filter(({ queue, key }) => queue === orderedQueue && key !== null)
  const hasNext = (message: Message): boolean => nextOf(before, message) !== undefined
  const isSkip = write.kind === 'bury'
  return [
    ...(write.kind === 'park'
      ? settled.map(({ place }) => (places.includes(place) ? 'park' : 'park refused'))
      : []),
    ...each(isSkip ? keyed.filter(hasNext) : [], 'skipped with one waiting'),
    ...each(isSkip ? keyed.filter((one) => !hasNext(one)) : [], 'skipped with none waiting'),
    ...each(write.kind === 'ack' ? keyed.filter(hasNext) : [], 'acked with one waiting'),
    ...written.flatMap(({ queue }) => paused({ before }, queue, 'settled while paused')),
  ]
}

function cancelled({ before, after }: Expected): readonly OrderEffect[] {
  const gone = own(before).filter(({ key, isToJoin, place }) => {
    return key !== null && !isToJoin && !after.messages.some((one) => one.place === place)
  })
  return each(gone, 'timer cancelled in its place')
}

function replayed({ before, after, answer }: Expected): readonly OrderEffect[] {
  if (answer.kind !== 'replayed' || answer.result !== 'replayed') return []
  if (answer.lands === 'behind_key')
    return [after.messages.at(-1)?.isToJoin ? 'landed behind its key later' : 'landed behind its key']
  return answer.lands === 'in_place'
    ? ['landed in place', ...nameless(before, after, 'replayed without its name')]
    : []
}

/** One that lives again, and whose name is taken. */
function nameless(before: State, after: State, effect: OrderEffect): readonly OrderEffect[] {
  const freed = own(before).find(
    ({ place, isParked }) => isParked && !after.messages.find((one) => one.place === place)?.isParked,
  )
  const now = after.messages.find(({ place }) => place === freed?.place)
  return now?.firedTimer != null && now.death === null ? [effect] : []
}

function decided(
  { before, after, answer }: Expected,
  { kind }: Of<'resumeKey' | 'skipKey'>,
): readonly OrderEffect[] {
  if (answer.kind !== 'decided' || answer.id === null) return ['nothing parked']
  if (kind === 'skipKey') return ['key skipped']
  return ['key resumed', ...nameless(before, after, 'resumed without its name')]
}

function listed({ answer }: Expected): readonly OrderEffect[] {
  const keys = answer.kind === 'keys' ? answer.keys : []
  return keys.map(({ state }) => `${state} key listed` as const)
}

function changed({ answer }: Expected, { kind }: Of<'pause' | 'resume'>): readonly OrderEffect[] {
  const isChanged = answer.kind === 'paused' && answer.isChanged
  return [`${kind}d${isChanged ? '' : ' already'}` as const]
}

function paused(
  { before }: Pick<Expected, 'before'>,
  queue: Message['queue'],
  effect: OrderEffect,
): readonly OrderEffect[] {
  return isPaused(before, queue) ? [effect] : []
}
