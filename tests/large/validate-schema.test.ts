// The whole of what ../integration/validate-schema.test.ts does a share of.
import '../integration/validate-schema.test.ts'
