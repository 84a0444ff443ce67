import { unreachable } from '../../packages/postbox/src/core/unreachable.ts'
import type { Command, DraftChoice, LeaseChoice, WriteChoice } from './commands.ts'
import type { Draft, Fence, Message, Settled, State, Step, Write } from './terms.ts'

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
    case 'pass':
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

function settling(state: State, { leases, write }: Of<'settle'>, number: number): Step | null {
  const chosen = leases.flatMap((lease) => fenceOf(state, lease) ?? [])
  if (chosen.length === 0) return null
  const byPlace = new Map(chosen.map((fence) => [fence.place, fence]))
  const fences = [...byPlace.values()].sort((a, b) => a.place - b.place)
  const isBurial = write.kind === 'bury' || write.kind === 'quarantine'
  const settled = isBurial ? oneOfEachId(state, fences) : fences
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
      return { ...choice, reason: choice.hasRun ? 'rejected' : 'max_deliveries' }
    case 'retry':
    case 'snooze':
    case 'release':
    case 'extend':
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
