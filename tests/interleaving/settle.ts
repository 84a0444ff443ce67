// Waiting without a clock: Postgres knows who waits for whom.
import type { Bench } from './bench.ts'
import type { DrivenSession } from './session.ts'

type Blockers = ReadonlyMap<number, readonly number[]>

/** Until every step that was begun is over, or waits for a lock of somebody who does nothing, and so for as long as he does. */
export async function settle(bench: Bench, actors: readonly DrivenSession[]): Promise<void> {
  for (;;) {
    const running = actors.filter((session) => session.running !== null)
    const [first] = running
    if (first === undefined) return
    if (actors.every((other) => other === first || (other.running === null && !other.isInTransaction))) {
      await first.over
      continue
    }
    const blockers = await bench.blockers(running.map(({ pid }) => pid))
    if (running.some((session) => session.running === null)) continue
    if (!running.every(({ pid }) => areOurs(blockers.get(pid) ?? [], actors))) continue
    for (const session of running) session.markWaited()
    const isForAWhile = running.every(
      ({ running: step, pid }) => !step?.givesUp && waitsForIdle(pid, blockers, new Set()),
    )
    if (isForAWhile) return
  }
}

/** Others on the same server may be in the way for a moment: of a NOTIFY, say. */
function areOurs(blockers: readonly number[], actors: readonly DrivenSession[]): boolean {
  return blockers.length > 0 && blockers.every((pid) => actors.some((session) => session.pid === pid))
}

/** Not if it waits in a circle: Postgres will end that. */
function waitsForIdle(pid: number, blockers: Blockers, seen: ReadonlySet<number>): boolean {
  const others = blockers.get(pid)
  if (others === undefined) return true
  return !seen.has(pid) && others.some((other) => waitsForIdle(other, blockers, new Set(seen).add(pid)))
}

/** Nobody is left in a transaction, or waiting. */
export async function calm(bench: Bench): Promise<void> {
  const sessions = [...bench.sessions.values()]
  while (sessions.some(({ running, isInTransaction }) => running !== null || isInTransaction)) {
    for (const session of sessions) if (session.running === null) await session.rollBack()
    const running = sessions.filter((session) => session.running !== null)
    // Who got his lock by one of these has to be rolled back first: others may wait for him now.
    const isIdle = sessions.some(({ running: step, isInTransaction }) => step === null && isInTransaction)
    if (running.length > 0 && !isIdle) await Promise.race(running.map(({ over }) => over))
  }
}
