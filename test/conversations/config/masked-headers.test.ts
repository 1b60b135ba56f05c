/** Headers whose masked values a client sends back. */
import { expect, test } from 'vitest'
import { MASK } from '../../../src/contract/values/llm-config.ts'
import { mergeLlmSecrets } from '../../../src/conversations/config/settings.ts'

test.each(['constructor', '__proto__', 'X-New'])(
  'a masked value of %s that was never stored leaves the header out',
  (name) => {
    const extra_headers = Object.fromEntries([[name, MASK]])
    expect(mergeLlmSecrets({}, { extra_headers })).not.toHaveProperty('extra_headers', expect.stringContaining(name))
  },
)
