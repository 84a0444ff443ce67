import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Those of four seconds and more, the longest first, as the log of a run tells them. By itself vitest begins with the largest files where it has not run them
// before: one of these, begun last, would be waited for alone.
const longest = [
  ...['binaries', 'model', 'interleaving', 'stores', 'plans', 'cut', 'validate-schema', 'handles', 'server'],
  ...[
    'kill',
    'processes',
    'killer',
    'order-history',
    'pause',
    'rolling-builds',
    'wake',
    'databases',
    'settling',
  ],
  ...['races', 'lifecycle', 'engine', 'rolling-deploy', 'kill-transactions', 'decision-faults', 'network'],
  ...['claims', 'dead-letter-batch-costs', 'orms', 'replay-all', 'settle-statements', 'rolling-options'],
  ...['order-processes', 'outcomes', 'delivered', 'stop', 'dead-letter-costs', 'key-costs', 'replay', 'keys'],
]

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b))
  }
}

function place({ moduleId }: TestSpecification): number {
  const at = longest.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
  return at === -1 ? longest.length : at
}
