import { memoryStore, pgliteStore, serverStore } from '../support/stores.ts'
import { describeStore } from './store-suite.ts'

describeStore(memoryStore)
describeStore(serverStore)
// Last: it keeps timers of its own, which the guard of the server's tests would find.
describeStore(pgliteStore)
