// The child's side of the channel. Only for the programs that the tests bundle and start.
import type { Command, Report } from './protocol.ts'

export function report(one: Report): void {
  process.send?.(one)
}

/** Follows commands until `leave` is called. A test that is gone is no reason to live on. */
export function followCommands(follow: (command: Command) => void): { leave(): void } {
  const orphaned = (): void => process.exit(3)
  process.on('message', (command) => follow(command as Command))
  process.on('warning', (warning) => report({ kind: 'warning', text: String(warning.stack ?? warning) }))
  process.on('disconnect', orphaned)
  return {
    // The channel is all that keeps the process now: it has to end by itself.
    leave() {
      process.removeListener('disconnect', orphaned)
      process.disconnect()
    },
  }
}

/** Order of a child, from its environment. */
export function readOrder<Order>(): Order {
  return JSON.parse(process.env['CHAOS_ORDER'] ?? 'null') as Order
}
