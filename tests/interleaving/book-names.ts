// Entries of who writes or cancels timers, and of who replays dead letters. Pure.
import {
  type Booked,
  broken,
  bySeq,
  changed,
  type Entering,
  ended,
  entryOf,
  holderOf,
  type Of,
  shortId,
} from './books.ts'

export function armed({ account, hour }: Entering, { made, conflict, seq }: Of<'armed'>): Booked {
  const holder = made.timer === null ? undefined : holderOf(account, made.timer)
  const entry = entryOf(made, hour, seq)
  if (holder === undefined) return { account: { ...account, messages: [...account.messages, entry] } }
  const what = `#${shortId(made.id)} was armed as ${made.timer}`
  if (conflict !== 'replace')
    return broken('a timer’s name has one holder', `${what}, which is #${shortId(holder.id)}`)
  if (holder.token !== null)
    return broken('a running message is not undercut', `${what} in the place of a running one`)
  const replacing = { ...entry, seq: holder.seq, fired: holder.fired, dueAt: entry.dueAt ?? hour }
  const now = ended(account, holder, 'replaced')
  return { account: { ...now, messages: [...now.messages, replacing] } }
}

export function kept({ account, wasAlone }: Entering, timer: string): Booked {
  if (!wasAlone || holderOf(account, timer) !== undefined) return { account }
  return broken('a name that nobody holds can be armed', `${timer} was kept, and there is none`)
}

export function cancelled({ account }: Entering, { seq, timer }: Of<'cancelled'>): Booked {
  const entry = bySeq(account, seq)
  if (entry === undefined || entry.timer !== timer || entry.isFailed)
    return broken('only a waiting timer is cancelled', `${timer} was cancelled, and did not wait`)
  if (entry.token !== null)
    return broken('a running message is not undercut', `${timer} was cancelled while it ran`)
  return { account: ended(account, entry, 'cancelled') }
}

export function nothingToCancel({ account, wasAlone }: Entering, timer: string): Booked {
  const holder = holderOf(account, timer)
  if (!wasAlone || holder === undefined || holder.token !== null) return { account }
  return broken('a waiting timer can be cancelled', `${timer} waits, and was not found`)
}

export function replayed({ account, hour }: Entering, id: string): Booked {
  const letter = account.dead.find((one) => one.id === id)
  const failed = account.messages.find((one) => one.id === id && one.isFailed)
  const timer = letter?.timer ?? failed?.timer ?? failed?.fired ?? null
  if (letter === undefined && failed === undefined)
    return broken('a dead letter is replayed once', `#${shortId(id)} was replayed, and was not dead`)
  if (timer !== null && holderOf(account, timer) !== undefined)
    return broken('a timer’s name has one holder', `#${shortId(id)} was replayed as ${timer}`)
  const renewed = { timer, fired: null, attempts: 0, deliveries: 0, isFailed: false }
  const replays = new Set(account.replays).add(id)
  if (failed !== undefined)
    return changed({ ...account, replays }, failed, { ...renewed, cycles: failed.cycles + 1, dueAt: hour })
  const fresh = { ...entryOf({ id, timer, delayHours: null }, hour, null), cycles: letter!.cycles + 1 }
  const dead = account.dead.filter((one) => one !== letter)
  return { account: { ...account, replays, dead, messages: [...account.messages, fresh] } }
}

export function notReplayed({ account, wasAlone }: Entering, { id, because }: Of<'not replayed'>): Booked {
  const failed = account.messages.find((one) => one.id === id && one.isFailed)
  const letter = account.dead.find((one) => one.id === id) ?? failed
  const what = `#${shortId(id)} was not replayed (${because})`
  if (because === 'already_replayed' && !account.replays.has(id))
    return broken('the second operator is told the truth', `${what}, and nobody has`)
  if (!wasAlone) return { account }
  const timer = letter?.timer ?? null
  const fired = failed?.fired ?? null
  const isTaken = [timer, fired].some((name) => name !== null && holderOf(account, name) !== undefined)
  if (because === 'timer_conflict' ? isTaken : letter === undefined) return { account }
  return broken('the second operator is told the truth', what)
}
