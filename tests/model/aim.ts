import { unreachable } from '../../packages/postbox/src/core/unreachable.ts'
import { isPaused } from './claiming.ts'
import type { Command, DraftChoice, LeaseChoice, WriteChoice } from './command.ts'
import { isFirst } from './ordering.ts'
import {
  type Choice,
  type Draft,
  type Fence,
  type Message,
  orderedQueue,
  type Settled,
  type State,
  type Step,
  type Write,
} from './terms.ts'

/**
 * What a command comes to in this state; null: there is nothing to settle, or to replay. `number` is the command's own, and numbers what
 * it makes.
 */
export function stepOf(state: State, command: Command, number: number): Step | null {
  switch (command.kind) {
    case 'publish':
      return publishing(state, command, number)
    case 'claim':
      return claiming(state, command, number)
    case 'settle':
      return settling(state, command, number)
    case 'replay':
      return replaying(state, command)
    case 'claimInOrder':
      return claimingInOrder(state, command, number)
    case 'join':
      // Nobody sees to a paused queue.
      return isPaused(state, orderedQueue) ? null : command
    case 'resumeKey':
    case 'skipKey':
      return { ...command, by: `operator ${number}` }
    case 'pause':
    case 'resume':
      return { ...command, by: `operator ${number}` }
    case 'pass':
    case 'listKeys':
    case 'cancel':
    case 'crash':
      return command
    default:
      return unreachable(command)
  }
}

type Of<Kind extends Command['kind']> = Command & { readonly kind: Kind }

function publishing(state: State, command: Of<'publish'>, number: number): Step {
  const { queue, conflict, ending } = command
  const drafts = command.drafts.map((choice, nth) =>
    draftOf(state, { ...choice, queue, conflict }, number * 10 + nth),
  )
  // An id comes once in a batch, and so does a timer that is to be replaced: publish refuses anything else.
  const distinct = drafts.map((draft, nth) => {
    const before = drafts.slice(0, nth)
    const isTimerAgain = conflict === 'replace' && before.some(({ timer }) => timer === draft.timer)
    return {
      ...draft,
      id: before.some(({ id }) => id === draft.id) ? draft.content : draft.id,
      timer: isTimerAgain ? null : draft.timer,
    }
  })
  return { kind: 'publish', ending, drafts: distinct }
}

function draftOf(
  { now, messages, dead }: State,
  choice: DraftChoice & Pick<Draft, 'queue' | 'conflict'>,
  number: number,
): Draft {
  const { again, due, ...draft } = choice
  const ids = (dead.length > 0 ? dead : messages).map(({ id }) => id)
  return {
    ...draft,
    id: (again === null ? undefined : nth(ids, again)) ?? number,
    content: number,
    due: due.kind === 'at' ? { kind: 'at', time: now + due.inMs } : due,
  }
}

function claiming({ now, nextPlace }: State, command: Of<'claim'>, number: number): Step {
  const { worker, wanted, generation } = command
  const aimed = wanted.map(({ dueWithinMs, after, ...one }) => ({
    ...one,
    after: Math.min(after, nextPlace - 1),
    dueFrom: dueWithinMs === null ? null : now - dueWithinMs,
  }))
  return { kind: 'claim', claim: number, worker, wanted: aimed, generation }
}

function claimingInOrder({ now, nextPlace, ends }: State, command: Of<'claimInOrder'>, number: number): Step {
  const { worker, generation } = command
  const { dueWithinMs, after, goesOn, ...one } = command.wanted
  const wanted = {
    ...one,
    after: Math.min(after, nextPlace - 1),
    dueFrom: dueWithinMs === null ? null : now - dueWithinMs,
    ends: goesOn ? [...ends].map(([key, place]) => ({ key, place })) : [],
  }
  return { kind: 'claimInOrder', claim: number, worker, wanted, generation, choice: nothing }
}

const nothing: Choice = { places: [], passed: null, leftKeys: [], isJoinDue: false }

function settling(state: State, { leases, write }: Of<'settle'>, number: number): Step | null {
  const chosen = leases.flatMap((lease) => fenceOf(state, lease) ?? [])
  if (chosen.length === 0) return null
  const byPlace = new Map(chosen.map((fence) => [fence.place, fence]))
  const fences = [...byPlace.values()].sort((a, b) => a.place - b.place)
  const isBurial = 'hasRun' in write
  const inTurn = fences.filter((fence) => isInTurn(state, fence, write))
  if (inTurn.length === 0) return null
  const settled = isBurial ? oneOfEachId(state, inTurn) : inTurn
  return { kind: 'settle', settled: withFollowOns(state, settled, { write, number }), write: writeOf(write) }
}

function fenceOf({ given }: State, { index, from }: LeaseChoice): Fence | undefined {
  const lease = nth(from === 'held' ? given.filter(({ isInHand }) => isInHand) : given, index)
  if (lease === undefined) return undefined
  const { place, claim } = lease
  if (from !== 'foreign') return { place, claim }
  // Number 0 is nobody's.
  return { place, claim: given.find((other) => other.claim !== claim)?.claim ?? 0 }
}

/**
 * A worker runs the first message of a key, and the next when it is written that this one is gone: only then has it something to say of it, but that it
 * still has it, or gives it back. Only what is in the order of its key is parked. What it has lost it may say whatever of.
 */
function isInTurn(state: State, { place, claim }: Fence, write: WriteChoice): boolean {
  const message = state.messages.find((one) => one.place === place && one.lease?.claim === claim)
  if (message === undefined || write.kind === 'release' || write.kind === 'extend') return true
  const isOrdered = message.queue === orderedQueue
  if (write.kind === 'park' && (!isOrdered || message.key === null)) return false
  return !isOrdered || isFirst(state, message)
}

/** Which of two that died in the same statement is the newer one, nobody promises. */
function oneOfEachId({ messages }: State, fences: readonly Fence[]): readonly Fence[] {
  const idOf = ({ place }: Fence): Message['id'] | undefined =>
    messages.find((message) => message.place === place)?.id
  return fences.filter((fence, nth) => fences.findIndex((other) => idOf(other) === idOf(fence)) === nth)
}

/** Dealt out: the first message gets the first draft, and so on, round and round. */
function withFollowOns(
  state: State,
  fences: readonly Fence[],
  { write, number }: { readonly write: WriteChoice; readonly number: number },
): readonly Settled[] {
  const choices = write.kind === 'ack' ? write.followOns : []
  const drafts = choices.map((choice, nth) => draftOf(state, choice, number * 10 + nth))
  return fences.map((fence, place) => ({
    ...fence,
    followOns: drafts.filter((_, nth) => nth % fences.length === place),
  }))
}

function writeOf(choice: WriteChoice): Write {
  switch (choice.kind) {
    case 'ack':
      return { kind: 'ack' }
    case 'bury':
    case 'quarantine':
    case 'park':
      return { ...choice, reason: choice.hasRun ? 'rejected' : 'max_deliveries' }
    case 'retry':
    case 'snooze':
    case 'release':
    case 'extend':
    case 'count':
      return choice
    default:
      return unreachable(choice)
  }
}

function replaying({ messages, dead }: State, command: Of<'replay'>): Step | null {
  const { letter, isStray, ...replay } = command
  const candidates = isStray ? messages : [...dead, ...messages.filter(({ death }) => death !== null)]
  const id = nth(candidates, letter)?.id ?? (isStray ? unknownId : null)
  if (id === null) return null
  return { ...replay, id, by: `operator ${letter}` }
}

const unknownId = 0

function nth<T>(items: readonly T[], index: number): T | undefined {
  return items[index % items.length]
}
