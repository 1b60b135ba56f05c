/**
 * The OpenAPI document and the page that shows it. The document is the committed `openapi/openapi.json`, so neither a
 * generator nor a template runs in the server; a test keeps that file equal to the routes.
 */
import helmet from '@fastify/helmet'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { readAsset } from './assets.ts'
import { PAGE_SECURITY_HEADERS } from './security-headers.ts'

/** Asset of swagger-ui -> content type: what the page loads, and nothing else of that package. */
const PAGE_FILES = {
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
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`

/** The key typed into the page stays in its memory; `validatorUrl` would send the document to another host. */
const START = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false,
  queryConfigEnabled: false,
  validatorUrl: null,
})
`

const OPEN = { config: { public: true }, schema: { hide: true } }
const PAGE_PART = { ...OPEN, config: { public: true, page: true } }

/** Adds `/openapi.json`, `/asyncapi.json`, `/docs` and what the page loads, all without a key. Files are read when asked for. */
export async function registerDocs(app: FastifyInstance): Promise<void> {
  for (const file of ['openapi.json', 'asyncapi.json']) {
    app.get(`/${file}`, OPEN, (_request, reply) => {
      return reply.type('application/json; charset=utf-8').send(readAsset(`openapi/${file}`))
    })
  }
  await app.register(pageRoutes)
}

async function pageRoutes(app: FastifyInstance): Promise<void> {
  await app.register(helmet, PAGE_SECURITY_HEADERS)
  app.get('/docs', PAGE_PART, (request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    // Under `/docs/` the page's relative links would point one level too deep.
    return path.endsWith('/') ? reply.redirect('../docs') : sendPart(reply, 'text/html; charset=utf-8', PAGE)
  })
  app.get('/docs/start.js', PAGE_PART, (_request, reply) => sendPart(reply, 'text/javascript; charset=utf-8', START))
  for (const [file, type] of Object.entries(PAGE_FILES)) {
    app.get(`/docs/${file}`, PAGE_PART, (_request, reply) => sendPart(reply, type, readAsset(`swagger-ui/${file}`)))
  }
}

function sendPart(reply: FastifyReply, type: string, content: string | Buffer): FastifyReply {
  return reply.header('cache-control', 'no-cache').type(type).send(content)
}
