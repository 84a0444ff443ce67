// A contender's process: opens its driver, does what the parent says, tells what came of it. It ends with its parent.
import { openDriver } from './open-driver.ts'
import { perform } from './perform.ts'
import type { Casting, Order, Report } from './protocol.ts'

const casting = JSON.parse(process.argv[2]!) as Casting
const driver = openDriver(casting)
const tell = (report: Report): void => {
  process.send?.(report)
}

process.on('message', (order: Order) => {
  perform(driver, { order, application: casting, tell })
    .then((output) => tell({ kind: 'answer', id: order.id, output }))
    .catch((error: unknown) => tell({ kind: 'failure', id: order.id, error: describe(error) }))
})
// Nothing that is written is of use to anybody when the parent is gone.
process.on('disconnect', () => process.exit(0))
tell({ kind: 'ready' })

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
