import { isDeepStrictEqual } from 'node:util'
import type { DeliveredStorage } from '../../packages/postbox/src/core/storage-modes.ts'
import type { Store } from '../support/stores.ts'
import { stepOf } from './aim.ts'
import type { Command } from './command.ts'
import { driverOf } from './drive.ts'
import { lookAt } from './look.ts'
import { empty, reduce } from './reducer.ts'
import type { Answer, KeptMessage, Message, State, Step } from './terms.ts'

/** A step of a sequence, and what the model makes of it. */
export interface Expected {
  readonly before: State
  readonly step: Step
  readonly answer: Answer
  readonly after: State
}

interface Following {
  readonly name: string
  readonly store: Store
  readonly delivered: DeliveredStorage
  readonly looksEverywhere: boolean
}

/**
 * Takes the commands on a store that is empty, step by step; throws when one of them comes to something else there. What a store may choose by
 * itself it is asked for, and the model goes on with that: so the steps of two stores may differ.
 */
export async function follow(
  following: Following,
  commands: readonly Command[],
): Promise<readonly Expected[]> {
  const tried: Step[] = []
  try {
    return await takeAll(following, commands, tried)
  } catch (error) {
    const told = tried.map((step, index) => `  ${index + 1}. ${JSON.stringify(step)}`)
    const message = error instanceof Error ? error.message : String(error)
    throw new Error(`${message}\n\nA short sequence that ends so:\n${told.join('\n')}`, { cause: error })
  }
}

async function takeAll(
  following: Following,
  commands: readonly Command[],
  tried: Step[],
): Promise<readonly Expected[]> {
  const { name, store, delivered } = following
  const driver = await driverOf(store, following)
  const taken: Expected[] = []
  let state = empty
  for (const [index, command] of commands.entries()) {
    const aimed = stepOf(state, command, index + 1)
    if (aimed === null) continue
    tried.push(aimed)
    const came = await driver.take(aimed, state.now)
    const step = chosen(aimed, came)
    tried.splice(-1, 1, step)
    const { state: after, answer } = reduce(state, step)
    const where = `${name}, step ${tried.length}, ${JSON.stringify(step)}`
    assertSame(`the answer of ${where}`, answer, came)
    if (driver.isLookDue) assertSame(`what is stored after ${where}`, lookAt(after), await driver.look())
    taken.push({ before: state, step, answer, after })
    state = after
  }
  assertSame(`what ${name} holds in the end`, lookAt(state), await driver.look())
  const kept = delivered === 'table' ? keptOf(taken) : []
  assertSame(`what ${name} keeps of delivered messages`, kept, await driver.lookAtDelivered())
  return taken
}

function chosen(step: Step, came: Answer): Step {
  const isChoice = step.kind === 'claimInOrder' && came.kind === 'claimedInOrder'
  return isChoice ? { ...step, choice: came.choice } : step
}

/** Every message whose acknowledgement was written, once, in that order. */
function keptOf(expected: readonly Expected[]): readonly KeptMessage[] {
  return expected.flatMap(({ before, step, answer }) => {
    if (step.kind !== 'settle' || step.write.kind !== 'ack' || answer.kind !== 'settled') return []
    const acked = answer.places.map((place) => before.messages.find((message) => message.place === place)!)
    return acked.toSorted((a, b) => a.place - b.place).map(keptFrom)
  })
}

function keptFrom(message: Message): KeptMessage {
  const { place, id, content, queue, key, attempts, deliveries, generation, history } = message
  return {
    ...{ place, id, content, queue, key, attempts, deliveries, generation },
    timer: message.timer ?? message.firedTimer,
    lives: (history?.cycles.length ?? 0) + 1,
  }
}

function assertSame<T>(what: string, model: T, store: T): void {
  if (isDeepStrictEqual(model, store)) return
  throw new Error(`${what}, differs from the model:\n${differences(model, store).join('\n')}`)
}

/** Where two values of the same shape differ, member by member. */
function differences(model: unknown, came: unknown, path = ''): readonly string[] {
  if (isDeepStrictEqual(model, came)) return []
  if (!isObject(model) || !isObject(came))
    return [`  ${path}: the model has ${show(model)}, the store ${show(came)}`]
  const members = new Set([...Object.keys(model), ...Object.keys(came)])
  return [...members].flatMap((member) => differences(model[member], came[member], `${path}.${member}`))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function show(value: unknown): string {
  if (value === undefined) return 'nothing'
  // JSON has no Infinity.
  return typeof value === 'number' ? String(value) : JSON.stringify(value)
}
