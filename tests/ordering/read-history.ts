// From the log of the database to the history of an outbox.
import type { Absence, Commit, History, Moment, Run, RunOutcome, Told } from './history.ts'
import { type Change, millisecondsOf, type Row, type Transaction } from './read-log.ts'

/** What handlers and the test write into the table `history`, each in a transaction of its own. */
export const createHistoryTable = `
  create table history (
    what text not null,
    process text not null,
    run int,
    message uuid,
    deliveries int,
    called_ms float8,
    outcome text
  )
`

export interface HistoryReader {
  add(transactions: readonly Transaction[]): void
  /** How many messages have been acknowledged. */
  readonly acked: number
  /** How many have been published and are neither acknowledged nor dead. */
  readonly waiting: number
  history(told: Told): History
}

interface LiveRow {
  readonly commit: Mutable<Commit>
  lease: Lease | null
  /** As they are stored. */
  deliveries: number
}

/** The row's token, and what becomes of it. */
interface Lease {
  readonly token: string
  /** Of the run that it is for. */
  readonly deliveries: number
  readonly claimed: Moment
  untilMs: number
  /** When the row was deleted under it. */
  accepted: Moment | null
}

type OpenRun = Mutable<Omit<Run, 'accepted' | 'lease'>> & { readonly lease: Lease | null }

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** `schema`: where the outbox and the table `history` are. */
export function createHistoryReader(schema: string): HistoryReader {
  const book = new Book()
  const takers: Readonly<Record<string, (change: Change, transaction: Transaction) => void>> = {
    [`${schema}.outbox`]: (change, transaction) => book.takeMessage(change, transaction),
    [`${schema}.history`]: ({ row }, { at }) => book.takeRecord(row, at),
  }
  return {
    add(transactions) {
      for (const transaction of transactions) {
        for (const change of transaction.changes) takers[change.table]?.(change, transaction)
      }
    },
    get acked() {
      return book.acked
    },
    get waiting() {
      return book.live.size
    },
    history: (told) => book.history(told),
  }
}

function isDead(changes: Transaction['changes'], id: string | null | undefined): boolean {
  return changes.some(({ table, row }) => table.endsWith('_dead') && row['id'] === id)
}

class Book {
  readonly live = new Map<string, LiveRow>()
  acked = 0
  readonly #commits: Mutable<Commit>[] = []
  /** All leases that a message ever had, by its id. */
  readonly #leases = new Map<string, Lease[]>()
  readonly #runs = new Map<string, OpenRun>()
  readonly #absences: Mutable<Absence>[] = []

  takeMessage(change: Change, transaction: Transaction): void {
    const { kind, row } = change
    const seq = row['seq'] ?? ''
    if (kind === 'INSERT') this.#publish(seq, row, transaction.at)
    if (kind === 'UPDATE') this.#update(seq, change, transaction.at)
    if (kind === 'DELETE') this.#end(seq, transaction)
  }

  #end(seq: string, { at, changes }: Transaction): void {
    const { commit, lease } = this.#liveRow(seq)
    // One that was for later takes its place among those of its key: it is inserted anew.
    if (
      changes.some(({ kind, row: { id } }) => kind === 'INSERT' && id === commit.id && !isDead(changes, id))
    ) {
      this.live.delete(seq)
      this.#commits.splice(this.#commits.indexOf(commit), 1)
      return
    }
    const isBuried = isDead(changes, commit.id)
    commit.gone = { at, how: isBuried ? 'buried' : 'acked' }
    this.live.delete(seq)
    if (isBuried) return
    this.acked += 1
    if (lease !== null) lease.accepted = at
  }

  takeRecord(row: Row, at: Moment): void {
    const process = row['process'] ?? ''
    const name = `${process} ${row['run']}`
    switch (row['what']) {
      case 'started':
        this.#runs.set(name, this.#start(row, at))
        break
      case 'ended':
        this.#run(name).ended = { at, outcome: row['outcome'] as RunOutcome }
        break
      case 'stopping':
      case 'killing':
        this.#absences.push({ process, from: at, to: null })
        break
      case 'continuing':
        for (const absence of this.#absences) if (absence.process === process) absence.to ??= at
        break
      default:
        throw new Error(`expected a record, got: ${JSON.stringify(row)}`)
    }
  }

  history(told: Told): History {
    const runs = [...this.#runs.values()].map((run) => ({ ...run, accepted: run.lease?.accepted ?? null }))
    return { told, commits: this.#commits, runs, absences: this.#absences }
  }

  #publish(seq: string, row: Row, at: Moment): void {
    const commit = { id: row['id'] ?? '', key: row['key'] ?? null, committed: at, gone: null }
    this.#commits.push(commit)
    this.live.set(seq, { commit, lease: null, deliveries: Number(row['deliveries'] ?? 0) })
  }

  #update(seq: string, { row, before }: Change, at: Moment): void {
    const live = this.#liveRow(before?.['seq'] ?? seq)
    if (before !== null) this.live.delete(before['seq'] ?? '')
    this.live.set(seq, live)
    if (live.commit.key === null && row['key'] !== null) this.#join(live.commit, row['key'] ?? null, at)
    this.#lease(live, row, at)
  }

  /** A message that was for later has got its key: its place is behind those that had it before. */
  #join(commit: Mutable<Commit>, key: string | null, at: Moment): void {
    this.#commits.splice(this.#commits.indexOf(commit), 1)
    this.#commits.push(commit)
    commit.key = key
    commit.committed = at
  }

  /** A token that is new is a claim; one that is known was renewed, or its delivery counted; none was given back. */
  #lease(live: LiveRow, row: Row, at: Moment): void {
    const { lease_token: token, leased_until: until } = row
    // What a claim does not count is counted when it is run.
    const counted = Number(row['deliveries'])
    const deliveries = counted + (counted > live.deliveries ? 0 : 1)
    live.deliveries = counted
    if (typeof token !== 'string' || typeof until !== 'string') live.lease = null
    else if (live.lease?.token === token) live.lease.untilMs = millisecondsOf(until)
    else {
      live.lease = { token, deliveries, claimed: at, untilMs: millisecondsOf(until), accepted: null }
      const { id } = live.commit
      this.#leases.set(id, [...(this.#leases.get(id) ?? []), live.lease])
    }
  }

  /** The claim of a run is told by the number of its delivery. One that was given back is not counted, so it is the last of that number. */
  #start(row: Row, at: Moment): OpenRun {
    const id = row['message'] ?? ''
    const lease =
      this.#leases.get(id)?.findLast(({ deliveries }) => deliveries === Number(row['deliveries'])) ?? null
    return {
      id,
      process: row['process'] ?? '',
      calledMs: Number(row['called_ms']),
      started: at,
      ended: null,
      lease,
    }
  }

  #liveRow(seq: string): LiveRow {
    const live = this.live.get(seq)
    if (live === undefined) throw new Error(`row ${seq} was changed, but never inserted`)
    return live
  }

  #run(name: string): OpenRun {
    const open = this.#runs.get(name)
    if (open === undefined) throw new Error(`run ${name} has ended, but never started`)
    return open
  }
}
