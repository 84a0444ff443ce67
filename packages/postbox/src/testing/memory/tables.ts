import { createOrder, type Order, type Place } from './order.ts'
import type {
  MemoryDeadLetter,
  MemoryDelivered,
  MemoryMessage,
  MemoryOperation,
  MemoryQueue,
} from './rows.ts'

export type Lane = 'fresh' | 'due'

/** What is committed, with its indexes. */
export interface Tables {
  readonly messages: ReadonlyMap<number, MemoryMessage>
  readonly dead: Map<number, MemoryDeadLetter>
  /** Who has handled which message → when. */
  readonly handled: Map<string, number>
  readonly operations: Map<string, MemoryOperation>
  readonly delivered: Map<number, MemoryDelivered>
  readonly queues: Map<string, MemoryQueue>
  /** The name of a waiting timer → its seq. */
  readonly timers: ReadonlyMap<string, number>
  lane(queue: string, lane: Lane): Order | undefined
  put(message: MemoryMessage): void
  remove(seq: number): void
}

export function createTables(): Tables {
  const messages = new Map<number, MemoryMessage>()
  const timers = new Map<string, number>()
  const lanes = new Map<string, Record<Lane, Order>>()
  const lanesOf = (queue: string): Record<Lane, Order> => {
    const found = lanes.get(queue) ?? { fresh: createOrder(), due: createOrder() }
    lanes.set(queue, found)
    return found
  }
  const remove = (seq: number): void => {
    const message = messages.get(seq)
    if (message === undefined) return
    messages.delete(seq)
    lanesOf(message.queue)[laneOf(message)].remove(seq)
    const name = nameHeldBy(message)
    if (name !== null) timers.delete(name)
  }
  const put = (message: MemoryMessage): void => {
    const before = messages.get(message.seq)
    const name = nameHeldBy(message)
    // A claim moves nothing but a timer's name.
    if (before?.dueAt !== message.dueAt || nameHeldBy(before) !== name) {
      remove(message.seq)
      lanesOf(message.queue)[laneOf(message)].add(placeOf(message))
      if (name !== null) timers.set(name, message.seq)
    }
    messages.set(message.seq, message)
  }
  return {
    messages,
    dead: new Map(),
    handled: new Map(),
    operations: new Map(),
    delivered: new Map(),
    queues: new Map(),
    timers,
    lane: (queue, lane) => lanes.get(queue)?.[lane],
    put,
    remove,
  }
}

export function laneOf({ dueAt }: MemoryMessage): Lane {
  return dueAt === null ? 'fresh' : 'due'
}

export function placeOf({ dueAt, seq }: MemoryMessage): Place {
  return { at: dueAt ?? 0, seq }
}

/** A timer's name is one per queue. No text that is stored has a NUL. */
export function timerName(queue: string, timerId: string): string {
  return `${queue}\0${timerId}`
}

/** The name that the message keeps others from having. What is dead was claimed before, and has given its own up. */
export function nameHeldBy(message: MemoryMessage | undefined): string | null {
  if (message === undefined || message.timerId === null) return null
  return timerName(message.queue, message.timerId)
}
