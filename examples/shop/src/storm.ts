import type { DeadLetterFilter, DeadLetterOperation } from 'postbox'
import { NoFerry } from './carrier.ts'
import type { Paint } from './paint.ts'
import { thousands } from './paint.ts'
import type { Shop } from './shop.ts'

const operator = 'harbour-master@example.com'
const everyParcelOverSeconds = 2

/** What died of the storm, and nothing that died of anything else. */
const stormbound = {
  queue: 'orders',
  reason: 'retry_terminal',
  search: NoFerry.name,
} satisfies DeadLetterFilter

/**
 * The fault is mended, and whatever died of it is replayed, by a filter: looked at first, then for real, at a pace that
 * the ferry can stand.
 */
export async function endStorm({ outbox, weather, tally }: Shop, say: (line: string) => void): Promise<void> {
  weather.isStormy = false
  const { matched, groups } = await outbox.deadLetters.replayAll(stormbound, { by: operator, dryRun: true })
  const kinds = groups.map(({ queue, reason, count }) => `${thousands(count)} ${queue}, ${reason}`)
  say(`The storm is over. A dry run finds what died of it: ${kinds.join('; ') || 'nothing'}.`)
  if (matched.count === 0) return
  const perSecond = Math.max(10, Math.ceil(matched.count / everyParcelOverSeconds))
  const { replayed } = await outbox.deadLetters.replayAll(stormbound, { by: operator, perSecond })
  tally.deadReplayed += replayed
  say(`Replayed ${thousands(replayed)} by filter: ${thousands(perSecond)} a second are due.`)
}

/** What the outbox has written down of it: who, what, how many. */
export async function operationLines({ outbox }: Shop, paint: Paint): Promise<string[]> {
  const { items } = await outbox.deadLetters.operations()
  const { count, atLeast } = await outbox.deadLetters.count()
  const left = `${thousands(count)}${atLeast ? '+' : ''}`
  return items.flatMap((operation) => linesOf(operation, left, paint))
}

function linesOf(
  { id, by, filter, settings, changed }: DeadLetterOperation,
  left: string,
  paint: Paint,
): string[] {
  const line = (label: string, text: string): string => `  ${paint('dim', label.padEnd(11))}${text}`
  const pace = settings.perSecond === undefined ? '' : `, ${thousands(settings.perSecond)} a second`
  return [
    '',
    line('replayed', `${paint('bold', thousands(changed))} by filter${pace}; dead letters left: ${left}`),
    line('by', by),
    line('filter', JSON.stringify(filter)),
    line('operation', id),
  ]
}
