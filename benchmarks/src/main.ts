import { help, readArguments } from './arguments.ts'
import { runBench } from './bench/run.ts'
import { runCounters } from './counters/run.ts'
import { runOrder } from './order/run.ts'

process.exitCode = await main()

async function main(): Promise<number> {
  const wish = readArguments(process.argv.slice(2))
  switch (wish.kind) {
    case 'help':
      console.log(help)
      return 0
    case 'mistake':
      console.error(`${wish.sentence}. \`--help\` explains.`)
      return 2
    case 'counters':
      return runCounters(wish)
    case 'order':
      return runOrder(wish)
    case 'bench':
      return runBench(wish)
  }
}
