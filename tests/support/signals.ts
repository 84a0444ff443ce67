// Waiting for what happens instead of sleeping. Every wait is bounded and its failure names what did not come.
import { setTimeout as wait } from 'node:timers/promises'
import { waitLimitMs } from './patience.ts'

const pollMs = 5

export interface WaitOptions {
  /** @default waitLimitMs */
  readonly withinMs?: number
}

export interface Signal<T> {
  /** Later calls change nothing: a signal happens once. */
  readonly send: (value: T) => void
  readonly hasHappened: boolean
  wait(options?: WaitOptions): Promise<T>
}

/** One event: `const started = signal<Message>('the handler starts')`, `started.send(message)`, `await started.wait()`. */
export function signal<T = void>(what: string): Signal<T> {
  const events = collector<T>(what)
  return {
    send(value) {
      if (events.all.length === 0) events.add(value)
    },
    get hasHappened() {
      return events.all.length > 0
    },
    async wait(options) {
      const [value] = await events.take(1, options)
      return value as T
    },
  }
}

export interface Collector<T> {
  readonly add: (value: T) => void
  readonly all: readonly T[]
  /** The first `count` values, as soon as there are that many. */
  take(count: number, options?: WaitOptions): Promise<T[]>
  /** The first value that passes, from those already there and those to come. */
  find(passes: (value: T) => boolean, options?: WaitOptions): Promise<T>
}

/** Many events in order: `const acked = collector<string>('acked messages')`, `await acked.take(3)`. */
export function collector<T>(what: string): Collector<T> {
  const all: T[] = []
  const watchers = new Set<() => void>()

  async function until<R>(
    look: () => R | undefined,
    sentence: () => string,
    options: WaitOptions = {},
  ): Promise<R> {
    const { withinMs = waitLimitMs } = options
    return new Promise<R>((resolve, reject) => {
      const timer = setTimeout(() => {
        watchers.delete(watch)
        reject(new Error(`waited ${withinMs} ms for ${sentence()}`))
      }, withinMs)
      const watch = () => {
        const found = look()
        if (found === undefined) return
        clearTimeout(timer)
        watchers.delete(watch)
        resolve(found)
      }
      watchers.add(watch)
      watch()
    })
  }

  return {
    all,
    add(value) {
      all.push(value)
      for (const watch of [...watchers]) watch()
    },
    take: (count, options) =>
      until(
        () => (all.length >= count ? all.slice(0, count) : undefined),
        () => (count === 1 ? what : `${count} ${what}, got ${all.length}`),
        options,
      ),
    async find(passes, options) {
      const found = await until(
        () =>
          all
            .filter(passes)
            .slice(0, 1)
            .map((value) => ({ value }))[0],
        () => `a match among ${what}, got ${all.length} without one`,
        options,
      )
      return found.value
    },
  }
}

/**
 * For what sends no event, such as a row another process changes: asks until the answer is neither false, null nor
 * undefined and returns it. An error of the check counts as "not yet", and is the cause if it never comes.
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { what, withinMs = waitLimitMs }: WaitOptions & { readonly what: string },
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = performance.now() + withinMs
  for (;;) {
    let cause: unknown
    try {
      const answer = await check()
      if (answer !== false && answer !== null && answer !== undefined)
        return answer as NonNullable<Exclude<T, false>>
    } catch (error) {
      cause = error
    }
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms for ${what}`, { cause })
    await wait(pollMs)
  }
}
