/** What is done: messages are written, or a backlog of them is consumed. */
export type Workload = 'publish' | 'consume'

/** What a whole scenario cost, as the server counted it. */
export interface Totals {
  readonly insertStatements: number
  readonly claimStatements: number
  readonly deleteStatements: number
  /** BEGIN and COMMIT. */
  readonly blockStatements: number
  readonly otherStatements: number
  /** Transactions that wrote something and committed. */
  readonly commits: number
  readonly rowsInserted: number
  readonly rowsUpdated: number
  /** Updates that stayed on their page and left every index alone. */
  readonly hotUpdates: number
  readonly rowsDeleted: number
  readonly deadRows: number
  readonly notifications: number
  readonly walRecords: number
  readonly walBytes: number
}

export interface Measurement {
  readonly workload: Workload
  readonly messages: number
  readonly totals: Totals
}

/** By the scenario's name. */
export type Measurements = Readonly<Record<string, Measurement>>
