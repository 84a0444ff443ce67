import type { Hearing, Listening } from './executor.ts'
import { type Sql, sqlExecutor } from './executors.ts'

/** postgres.js, as far as listening goes. */
export interface ListeningSql extends Sql {
  readonly listen: Listen
}

interface Listen {
  (
    channel: string,
    onNotify: (payload: string) => void,
    onListen: () => void,
  ): Promise<{ unlisten(): Promise<unknown> }>
  /** The client with the one connection that listens, from the first `listen` on. */
  readonly sql?: Sql
}

/** A channel that a client listens to for us. */
interface Registration {
  readonly hearers: Set<Hearer>
  /** Resolves when it listens, however often that was tried before. */
  readonly listened: Promise<void>
  /** Resolves when the client has answered: with the way to end it, or without. */
  readonly asked: Promise<{ unlisten(): Promise<unknown> } | null>
  /** The client has asked again by itself: what we got to end it with no longer does. */
  wasMadeAnew: boolean
}

interface Hearer {
  notified(payload: string): void
  lost(error: unknown): void
}

// Kept with the client, and used again: a channel cannot be given up once the client has asked for it a second time.
const registrations = new WeakMap<object, Map<string, Registration>>()

/**
 * postgres.js listens on a connection of its own, beyond `max`, and makes it anew when it breaks: `onListen` is called again then.
 * A listen that fails is tried again by the client itself, so it is the first `onListen` that counts and not the promise.
 */
export async function listen(
  sql: ListeningSql,
  channels: readonly string[],
  hearing: Hearing,
): Promise<Listening> {
  let isEnded = false
  const lost = (error: unknown): void => {
    if (!isEnded) hearing.lost(error)
    isEnded = true
  }
  const ends: (() => Promise<void>)[] = []
  for (const channel of channels) {
    const notified = (payload: string): void => {
      if (!isEnded) hearing.notified(channel, payload)
    }
    ends.push(await hear(sql, channel, { notified, lost }))
  }
  const end = async (): Promise<void> => {
    isEnded = true
    // Others may listen on this connection, too: it stays open, and its locks are given up one by one by whoever took them.
    await Promise.allSettled(ends.map((stop) => stop()))
  }
  const session = sql.listen.sql
  if (session === undefined) {
    await end()
    throw new Error('this release of postgres.js does not show its listening connection')
  }
  return { ...sqlExecutor(session), end, destroy: () => void end() }
}

/** Resolves when the channel is listened to, with the way to end it. */
async function hear(sql: ListeningSql, channel: string, hearer: Hearer): Promise<() => Promise<void>> {
  const channels = registrations.get(sql) ?? new Map<string, Registration>()
  registrations.set(sql, channels)
  const registration = channels.get(channel) ?? register(sql, channel)
  channels.set(channel, registration)
  registration.hearers.add(hearer)
  await registration.listened
  return async () => {
    registration.hearers.delete(hearer)
    const asked = await registration.asked
    if (registration.hearers.size > 0 || registration.wasMadeAnew || asked === null) return
    channels.delete(channel)
    await asked.unlisten()
  }
}

function register(sql: ListeningSql, channel: string): Registration {
  const hearers = new Set<Hearer>()
  let first = (): void => {}
  const listened = new Promise<void>((resolve) => {
    first = resolve
  })
  let times = 0
  const onListen = (): void => {
    first()
    if (++times === 1) return
    registration.wasMadeAnew = true
    for (const hearer of hearers) hearer.lost(new Error('the listening connection broke and was made anew'))
  }
  const notified = (payload: string): void => {
    for (const hearer of hearers) hearer.notified(payload)
  }
  const asked = sql.listen(channel, notified, onListen).catch(() => null)
  const registration: Registration = { hearers, listened, asked, wasMadeAnew: false }
  return registration
}
