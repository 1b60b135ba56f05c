import { expect, test } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { NODE_FLAGS } from '../src/process-settings.ts'

test.each(['start', 'demo'] as const)('npm run %s starts Node with the flags of the executable', (name) => {
  expect(manifest.scripts[name]).toContain(`exec node ${NODE_FLAGS.join(' ')} src/main.ts`)
})
