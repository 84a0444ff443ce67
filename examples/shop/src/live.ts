import type { Ending } from './ending.ts'
import type { View } from './frame.ts'
import { frameLines, sparklinePoints } from './frame.ts'
import type { Paint } from './paint.ts'
import { pause } from './pause.ts'
import { plainHeading, plainRow } from './plain.ts'
import type { Screen } from './screen.ts'
import type { Shop } from './shop.ts'
import { countWaiting } from './waiting.ts'

export interface Live {
  /** Shows the last numbers and resolves. */
  stop(): Promise<void>
}

const frameMs = 200
const rowMs = 1_000

/** Shows how the shop is doing until it is stopped: a frame five times a second, or a line every second. */
export function showLive(
  shop: Shop,
  ending: Ending,
  { screen, paint }: { screen: Screen; paint: Paint },
): Live {
  const stopping = new AbortController()
  const look = observe(shop)
  const show = async (): Promise<void> => {
    const view = await look(stopping.signal.aborted ? 'closed' : ending.closing.aborted ? 'closing' : 'open')
    if (screen.isLive) screen.draw(frameLines(view, paint))
    else screen.say(plainRow(view))
  }
  const run = async (): Promise<void> => {
    if (!screen.isLive) {
      for (const line of plainHeading) screen.say(line)
      ending.closing.addEventListener('abort', () => screen.say('The shop closes: what waits is delivered.'))
    }
    while (!stopping.signal.aborted) {
      await pause(screen.isLive ? frameMs : rowMs, stopping.signal)
      await show()
    }
  }
  // A broken database is met, and reported, by the customers.
  const running = run().catch(() => {})
  const stop = (): Promise<void> => {
    stopping.abort()
    return running
  }
  return { stop }
}

function observe({ pool, outbox, tally }: Shop): (state: View['state']) => Promise<View> {
  const openedAt = performance.now()
  const samples = [{ at: openedAt, delivered: 0 }]
  const past: { rate: number; waiting: number }[] = []
  return async (state) => {
    const waiting = await countWaiting(pool)
    const { count: dead } = await outbox.deadLetters.count()
    const now = { at: performance.now(), delivered: tally.delivered }
    samples.push(now)
    // The oldest sample is the one of a second ago.
    while (samples.length > 2 && now.at - samples[1]!.at >= 1_000) samples.shift()
    const oldest = samples[0]!
    const rate = Math.round(((now.delivered - oldest.delivered) * 1_000) / (now.at - oldest.at))
    past.push({ rate, waiting })
    if (past.length > sparklinePoints) past.shift()
    return { state, seconds: Math.round((now.at - openedAt) / 1_000), tally, waiting, dead, rate, past }
  }
}
