// POSTBOX_ORDER='ack-reclaim:ABBA' goes through that order alone, and prints it. In the place of a scenario's key, a twin's may stand.
import type { Bench } from './bench.ts'
import { cursorTwin } from './cursor.ts'
import { type Run, runOrder } from './run-order.ts'
import type { Scenario } from './terms.ts'
import { transcriptOf } from './transcript.ts'
import { rewriteOf } from './twin.ts'
import { twins } from './twins.ts'

interface ChosenOrder {
  readonly key: string
  readonly order: string
}

/** null: all of them. */
export const chosenOrder: ChosenOrder | null = parsed(process.env['POSTBOX_ORDER'])

function parsed(text: string | undefined): ChosenOrder | null {
  if (!text) return null
  const [key, order, ...others] = text.split(':')
  if (!key || !order || others.length > 0)
    throw new Error(`expected POSTBOX_ORDER to be key:ORDER, got ${text}`)
  return { key, order }
}

export async function runChosen(
  bench: Bench,
  scenarios: readonly Scenario[],
): Promise<{ readonly transcript: string; readonly run: Run }> {
  const { key, order } = chosenOrder!
  const twin = [...twins, cursorTwin].find((one) => one.key === key)
  const scenario = scenarios.find((one) => one.key === (twin?.scenario ?? key))
  if (scenario === undefined) throw new Error(`there is neither a scenario nor a twin ${key} here`)
  assertFits(scenario, order)
  if (twin !== undefined) bench.world.rewrite = rewriteOf(twin)
  const run = await runOrder(bench, scenario, { order })
  await bench.reset({ given: [] })
  return { run, transcript: transcriptOf(key, run) }
}

function assertFits({ key, programs }: Scenario, order: string): void {
  const wanted = Object.entries(programs).map(([letter, steps]) => letter.repeat(steps.length))
  if ([...order].sort().join('') === wanted.join('')) return
  throw new Error(`expected an order of ${key} to be made of ${wanted.join('')}, got ${order}`)
}
