import { isDeepStrictEqual } from 'node:util'
import type { DeliveredStorage } from '../../packages/postbox/src/core/storage-modes.ts'
import type { Store } from '../support/stores.ts'
import { stepOf } from './aim.ts'
import type { Command } from './commands.ts'
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

export function expectedOf(commands: readonly Command[]): readonly Expected[] {
  let before = empty
  return commands.flatMap((command, index) => {
    const step = stepOf(before, command, index + 1)
    if (step === null) return []
    const { state: after, answer } = reduce(before, step)
    const expected = { before, step, answer, after }
    before = after
    return expected
  })
}

interface Following {
  readonly name: string
  readonly store: Store
  readonly delivered: DeliveredStorage
}

/** Takes the steps on a store that is empty; throws when one of them comes to something else there. */
export async function follow(
  { name, store, delivered }: Following,
  expected: readonly Expected[],
): Promise<void> {
  const driver = await driverOf(store, delivered)
  for (const [index, { before, step, answer, after }] of expected.entries()) {
    const where = `${name}, step ${index + 1}, ${JSON.stringify(step)}`
    assertSame(`the answer of ${where}`, answer, await driver.take(step, before.now))
    if (driver.isLookDue || index === expected.length - 1)
      assertSame(`what is stored after ${where}`, lookAt(after), await driver.look())
  }
  const kept = delivered === 'table' ? keptOf(expected) : []
  assertSame(`what ${name} keeps of delivered messages`, kept, await driver.lookAtDelivered())
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
