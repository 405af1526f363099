// cutaway-trials: compiles and runs graphs in forked processes, so that what goes wrong there is only an answer. It has
// the whole compiler; cutaway-worker, which holds models' weights, has none.
#include "engine/trials/trial_server.h"

int main(int argc, char** argv) { return cutaway::trialServerMain(argc, argv); }
