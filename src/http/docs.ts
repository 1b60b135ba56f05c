/**
 * Serves the OpenAPI document and the page that shows it. The document is the committed `openapi/openapi.json`, so the
 * server runs no generator or template; a test compares that file with the routes.
 */
import helmet from '@fastify/helmet'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { readAsset, SWAGGER_FILES } from './assets.ts'
import { LOGIN_VALUE_NAME } from '../contract/values/login-value.ts'
import { describeRoute } from './openapi/describe-route.ts'
import { startPage } from './start-page.ts'
import { PAGE_SECURITY_HEADERS } from './guards/security-headers.ts'

const CONTENT_TYPES: Readonly<Record<(typeof SWAGGER_FILES)[number], string>> = {
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
  'favicon-32x32.png': 'image/png',
}

/** Links are relative: the page also works behind a proxy that serves the API under a path. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>agent-server API</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div class="swagger-ui"><p class="wrapper" id="login">To try requests, <a href="ui/">log in</a>, or set a key with Authorize.</p></div>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`

/**
 * The script of the page. It uses the login of the dashboard, which is half a secret: the cookie is the other half. A key
 * that is typed in is used instead, and survives a reload: it is kept in the session storage, which belongs to one tab and
 * ends with it. The command for curl that the page shows is that without the login. `validatorUrl` would send the document to another host. Event streams have no end, so they
 * cannot be tried out here; their descriptions say how to follow them.
 */
const START = `const KEY = 'agent-server-key'
const rememberKey = () => ({
  statePlugins: {
    auth: {
      wrapActions: {
        authorize: (authorize) => (payload) => {
          sessionStorage.setItem(KEY, payload.BearerAuth.value)
          return authorize(payload)
        },
        logout: (logout) => (names) => {
          sessionStorage.removeItem(KEY)
          return logout(names)
        },
      },
    },
  },
})
const basePath = new URL('.', location.href).pathname
const login = () => localStorage.getItem(basePath === '/' ? '${LOGIN_VALUE_NAME}' : '${LOGIN_VALUE_NAME} ' + basePath)
const withLogin = (request) => {
  const value = login()
  const isOwn = new URL(request.url, location.href).origin === location.origin
  if (value && isOwn && !request.loadSpec && !request.headers.Authorization) request.headers['X-Login'] = value
  return request
}
if (login())
  document.getElementById('login').textContent =
    'Requests are sent with the login of this browser, unless a key is set with Authorize.'
const keepStreamsOut = () => ({
  statePlugins: {
    spec: {
      wrapSelectors: {
        allowTryItOutFor: () => (_state, path) => !/(\\/events\\/stream|\\/firehose)$/.test(path),
      },
    },
  },
})
const ui = SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false,
  requestInterceptor: withLogin,
  showMutatedRequest: false,
  plugins: [rememberKey, keepStreamsOut],
  queryConfigEnabled: false,
  validatorUrl: null,
  onComplete() {
    const key = sessionStorage.getItem(KEY)
    if (key) ui.preauthorizeApiKey('BearerAuth', key)
  },
})
`

/** The style of the start page; the API's page has its own. */
const STYLE = `body {
  max-width: 42rem;
  margin: 3rem auto;
  padding: 0 1rem;
  font: 1rem/1.5 system-ui, sans-serif;
}
`

const PAGE_PART = { config: { public: true, page: true }, schema: { hide: true } }

const DOCUMENTS = {
  openapi: 'Get the OpenAPI 3.1 description of this API',
  asyncapi: 'Get the AsyncAPI 3 description of streams, sockets and deliveries',
}

/** `/openapi.json` and `/asyncapi.json`, without a key: they contain nothing secret. Each request reads the file. */
export const documentRoutes: FastifyPluginAsyncZod = async (app) => {
  const describe = describeRoute('server')
  for (const [name, summary] of Object.entries(DOCUMENTS)) {
    const response = { 200: z.record(z.string(), z.unknown()).describe(summary) }
    const options = { config: { public: true }, schema: { ...describe(name, summary), response } }
    app.get(`/${name}.json`, options, async (_request, reply) => {
      // The document is sent as it is stored, not parsed and written again.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the document itself, not an object of its schema
      return reply.type('application/json; charset=utf-8').send(readAsset(`openapi/${name}.json`) as never)
    })
  }
}

/** `/` and `/docs` and what the pages load, without a key. */
export async function pageRoutes(app: FastifyInstance): Promise<void> {
  await app.register(helmet, PAGE_SECURITY_HEADERS)
  app.get('/docs', PAGE_PART, (request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    // The page's relative links would point one level too deep under `/docs/`.
    return path.endsWith('/') ? reply.redirect('../docs') : sendPart(reply, 'text/html; charset=utf-8', PAGE)
  })
  startPage(app)
  app.get('/docs/page.css', PAGE_PART, (_request, reply) => sendPart(reply, 'text/css; charset=utf-8', STYLE))
  app.get('/docs/start.js', PAGE_PART, (_request, reply) => sendPart(reply, 'text/javascript; charset=utf-8', START))
  for (const file of SWAGGER_FILES) {
    const send = (reply: FastifyReply) => sendPart(reply, CONTENT_TYPES[file], readAsset(`swagger-ui/${file}`))
    app.get(`/docs/${file}`, PAGE_PART, (_request, reply) => send(reply))
  }
}

function sendPart(reply: FastifyReply, type: string, content: string | Buffer): FastifyReply {
  return reply.header('cache-control', 'no-cache').type(type).send(content)
}
