import type { Run } from './arguments.ts'
import { help, readArguments } from './arguments.ts'
import { serveCustomers } from './customers.ts'
import { openDatabase } from './database.ts'
import type { Ending } from './ending.ts'
import { listenForEnding } from './ending.ts'
import { showLive } from './live.ts'
import type { Paint } from './paint.ts'
import { painter } from './paint.ts'
import type { Screen } from './screen.ts'
import { openScreen } from './screen.ts'
import type { Shop } from './shop.ts'
import { createShop } from './shop.ts'
import { endStorm, operationLines } from './storm.ts'
import { subscribe } from './subscribers.ts'
import { runChecks, verdictLines } from './verdict.ts'
import { untilNothingWaits } from './waiting.ts'

interface Evening extends Run {
  readonly ending: Ending
  readonly screen: Screen
  readonly paint: Paint
}

process.exitCode = await main()

async function main(): Promise<number> {
  const wish = readArguments({
    args: process.argv.slice(2),
    sabotage: process.env['SHOP_SABOTAGE'],
    isTerminal: process.stdout.isTTY,
  })
  switch (wish.kind) {
    case 'help':
      console.log(help)
      return 0
    case 'mistake':
      console.error(`${wish.sentence}. \`--help\` explains.`)
      return 2
    case 'run':
      return run(wish)
  }
}

async function run(wish: Run): Promise<number> {
  const screen = openScreen(process.stdout)
  const ending = listenForEnding()
  ending.hurry.addEventListener('abort', () => leaveSoon(screen))
  try {
    return await runShop({ ...wish, ending, screen, paint: painter(process.stdout) })
  } catch (error) {
    const where = process.env['DATABASE_URL'] ? ' (on the server of DATABASE_URL)' : ''
    console.error(`The shop failed${where}: ${sentenceOf(error)}`)
    return 1
  }
}

/** Cleaning up takes a moment, and for ever if the database hangs. An embedded one ends with this process anyway. */
function leaveSoon(screen: Screen): void {
  screen.close()
  screen.say('Ended in a hurry: what waits is not delivered, and nothing is checked.')
  const leave = (): never => {
    screen.say('Left without cleaning up: the database did not answer.')
    process.exit(130)
  }
  setTimeout(leave, 10_000).unref()
}

/** Everything in order: a database, the tables, subscribers and customers, the end of the day, the verdict. */
async function runShop(evening: Evening): Promise<number> {
  const { sabotage, ending, screen, paint } = evening
  await using database = await openDatabase()
  screen.say(database.description)
  if (sabotage !== null) screen.say(paint('red', `Sabotaged by ${sabotage.name}: ${sabotage.effect}.`))
  const honest = await createShop(database, screen.say)
  const shop = sabotage === null ? honest : await sabotage.apply(honest)
  subscribe(shop)
  await trade(shop, evening)
  if (ending.hurry.aborted) return 130
  for (const line of await operationLines(shop, paint)) screen.say(line)
  const checks = await runChecks(shop.pool)
  for (const line of verdictLines(checks, paint)) screen.say(line)
  return checks.every(({ wrong }) => wrong === 0) ? 0 : 1
}

async function trade(shop: Shop, { forMs, ending, screen, paint }: Evening): Promise<void> {
  await shop.outbox.start()
  const live = showLive(shop, ending, { screen, paint })
  const closingTime = forMs === null ? undefined : setTimeout(ending.close, forMs)
  try {
    await serveCustomers(shop, ending)
    await untilNothingWaits(shop, ending.hurry)
    if (ending.hurry.aborted) return
    await endStorm(shop, screen.say)
    await untilNothingWaits(shop, ending.hurry)
  } finally {
    clearTimeout(closingTime)
    await shop.outbox.stop()
    await live.stop()
    screen.close()
  }
}

function sentenceOf(error: unknown): string {
  // Where the clean-up failed too, the first failure is the one that explains it.
  const { suppressed: first = error } = error as { suppressed?: unknown }
  const { message, code } = first as { message?: string; code?: string }
  // Node reports a refused connection without a message when it tried two addresses.
  return message || code || String(first)
}
