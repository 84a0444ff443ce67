// How long the tests wait for what should come. None of these times is the subject of a test: each turns a hang into a failure, and a machine that is several times
// slower than the one at hand, and busy with other files, must not meet it. `npm run mutate` is less patient, for it sees many tests wait in vain.

/** For one event; see signals.ts. Below the 30 s of a lease and of a listener's heartbeat: what comes only because one of these is over comes too late. */
export const waitLimitMs = Number(process.env['POSTBOX_WAIT_LIMIT_MS'] ?? 25_000)

/** For what takes many events, or many processes. */
export const longWaitLimitMs: number = 4 * waitLimitMs

/** For a test, and for a hook: longer than a wait, which fails with a sentence. */
export const testLimitMs: number = 4 * waitLimitMs

/** For a test of thousands of rounds, or of processes that are killed and started again. */
export const longTestLimitMs: number = 10 * waitLimitMs
