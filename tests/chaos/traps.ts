import type { Failpoint, FailpointName } from '../../packages/postbox/src/runtime/failpoint.ts'
import { report } from './child.ts'
import type { Trap } from './protocol.ts'

export interface Traps extends Failpoint {
  set(trap: Trap): void
  goOn(): void
}

/** A failpoint with at most one trap. Whoever runs into it is killed or held, once. */
export function createTraps(first: Trap | null, isRenewing: () => boolean): Traps {
  let trap = first
  let reached = 0
  let goOn = (): void => {}

  const spring = async ({ point, action }: Trap): Promise<void> => {
    if (action === 'kill') {
      if (point.endsWith('_sent')) await onTheWire()
      process.kill(process.pid, 'SIGKILL')
    }
    await new Promise<void>((resolve) => {
      goOn = resolve
      report({ kind: 'held', point })
    })
  }
  return {
    async reach(name: FailpointName) {
      if (trap === null || name !== trap.point || (trap.whileRenewing && !isRenewing())) return
      if (++reached < trap.nth) return
      const sprung = trap
      trap = null
      await spring(sprung)
    },
    set(next) {
      trap = next
      reached = 0
    },
    goOn: () => goOn(),
  }
}

/** A statement that was asked for in this turn of the event loop is in the socket two turns later, and survives us. */
async function onTheWire(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve))
}
