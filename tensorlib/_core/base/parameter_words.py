"""Explanations of parameters by their names, written once for the docstrings of all functions.

`explained.py` adds them to docstrings that do not explain their parameters themselves.
"""

# Each line: names, then what they take. A name with a dot is of one function alone, or of a class
# and those derived from it.
TEXT = """
A | a matrix, or a batch of them
B | matrices, or batches of them
LU_data | the matrices that `lu` and `linalg.lu_factor` give: both factors in one
LU_pivots | the 1-based rows that were swapped, as `linalg.lu_factor` gives them
UPLO | "L" or "U": which triangle is read; the other is not looked at
_weight | the first values of the weight, in the place of random ones
_freeze | whether the weight is left out of training
_random_samples | where the windows lie, as uniform numbers (N, C, dims); drawn by default
_stacklevel | changes nothing
_use_new_zipfile_serialization | changes nothing: files are of the newer format
affine | whether there are a weight and a bias for each channel
align_corners | whether the corners of input and output are in the same places, not their edges
alpha | a factor
addmv.alpha | a factor of the product
CrossMapLRN2d.alpha LocalResponseNorm.alpha | the factor of the sum of squares
RMSprop.alpha rho | how much of the mean of squares is kept at each step
celu_.alpha elu_.alpha ELU.alpha CELU.alpha elu.alpha celu.alpha | the scale of the part below 0
amsgrad | whether the largest mean of squares so far is used, not the present one
anchor positive negative | tensors of one shape (N, D): the samples, those alike, those unlike
approximate | "none", or "tanh" for a formula that is faster and less exact
argnums | the place, or places, of the arguments to differentiate by
args | the arguments that are handed on
array | a NumPy array, or what has its interface
as_tuple | whether there is a tensor of positions for each dim, not one of rows
atol | the absolute difference that is allowed
axis | NumPy's name of `dim`
axis0 axis1 | NumPy's names of `dim0` and `dim1`
b_hh w_hh | the bias and weight of the state
b_ih w_ih | the bias and weight of the input
base | the number that is raised to a power, or whose logarithm is taken
batch1 batch2 | the two batches of matrices
batch_first | whether the batch is the first dim, (N, L, *), and not the second, (L, N, *)
beta | a factor of the tensor that is added to
CrossMapLRN2d.beta LocalResponseNorm.beta | the power of the divisor
beta2_decay | the power of the number of steps in the decay of the mean of squares
betas | how much of the means of gradients and of squares is kept at each step
bias | whether a learnable bias is added
conv1d.bias conv2d.bias conv3d.bias linear.bias bilinear.bias | a bias for each output, or None
batch_norm.bias layer_norm.bias group_norm.bias instance_norm.bias | added at the end, or None
conv_transpose1d.bias conv_transpose2d.bias conv_transpose3d.bias | a bias for each output, or None
bidirectional | whether a second layer reads backwards; the outputs are joined
blank | the class that stands for no letter
cache_size | 1 keeps the last value and its inverse, 0 keeps nothing
capturable | changes nothing: it is for scripts that set it
ceil_mode | whether sizes are rounded up, so that a last window may begin inside and end outside
check_batched_grad | whether `vmap` of the gradient is compared, too
check_errors | whether a matrix that is singular is an error at once
check_nan | whether a NaN in a gradient is an error
check_undefined_grad check_grad_dtypes | change nothing: it is always checked
chunks | the number of pieces
col row | the numbers of columns and rows
concentration | the concentration, above 0
concentration0 concentration1 | the two concentrations, above 0
condition mask | a tensor of bools
copy | whether the elements are copied in any case
correction | what the number of elements is lessened by in the divisor: 1 for samples
count_include_pad | whether the zeros of the padding count in the mean
create_graph | whether the computation is recorded, so that its result has a gradient
cudnn_enable | changes nothing
data | the values, as a tensor, or what `tensor` takes
data_source | the data set that is drawn from
decimals | the number of digits after the point that are kept
descending | whether the largest comes first
destination source | the new and the old places of the dims
device | "cpu", or "meta" for a tensor without memory
Module.device | "cpu", or "meta" for parameters without memory
device_type | the kind of device, as "cpu"
diagonal offset | which diagonal: 0 is the main one, positive ones are above it
differentiable | changes nothing here: a step is never recorded
dilation | the distance of the elements of a window
dim | the dim, or dims; negative ones count from the last
dim0 dim1 | the two dims
dim2 | the two dims of which the diagonals are
dims | the dims
distance_function | a function of two tensors (N, D), by default the Euclidean distance
divisor_override | the divisor of the mean, in the place of the number of elements
downscale_factor | how many rows and columns go into one
dropout | the probability that an element of a layer's output is set to 0 in training
dropout_p | the probability that a weight is set to 0
dtype | the dtype of the result; by default it follows from the arguments
Module.dtype | the dtype of parameters and buffers, by default that of `set_default_dtype`
dx | the distance of the samples
eps | a small number that keeps divisors from 0
equal_nan | whether NaN is equal to NaN
embedding_dim | the length of a row
num_embeddings | the number of rows
end | the end, which is not part of it
start | the beginning
step | the distance of two elements
end_dim start_dim | the last and the first of the dims
ext_tensor | what has `__dlpack__`, or a capsule
exponent | the power, a number or a tensor
f | a path, or an open binary file
fast_mode | whether one random direction is compared, not all elements
fill_value val | the value of all elements
foreach fused | change nothing: all parameters are updated in one step
full | whether constant terms are part of the loss
generator | the generator that numbers are drawn from, by default that of `manual_seed`
grid | where to look (N, H, W, 2), in -1 to 1 across the input
groups | into how many parts the channels go, each by itself
has_aux | whether the function gives a pair, of which the second part is handed through
has_biases | whether there are biases among the parameters
hermitian | whether the matrices are symmetric
hidden_size | the length of the state
hx | the state at the beginning, by default zeros
ignore_index | the class that counts for nothing
in_channels | the number of channels of the input
in_features | the length of an input
out_features | the length of an output
include_last_offset | whether the last of the offsets is the end of the last bag
include_self | whether the elements that are there take part
index indices | positions, as a tensor of int64
indices_or_sections sections tensor_indices_or_sections | where to split, as a number or positions
dsplit.indices hsplit.indices vsplit.indices tensor_split.indices | where to split, as positions
initial_accumulator_value | the first sum of squares
init | the first slope
inplace | whether the input itself is overwritten
input | the input tensor
input1 input2 tensor1 tensor2 x1 x2 | the two tensors
input_lengths target_lengths | how long each sequence is
input_size | the length of an input at one step
inputs operands | the tensors
interpolation | between which elements a quantile lies: "linear", "lower", "higher", ...
k n | the number that is asked for
CrossMapLRN2d.k LocalResponseNorm.k | what is added to the sum in the divisor
keepdim | whether dims that are reduced stay, with size 1
keepdims | NumPy's name of `keepdim`
kernel_size | the size of the window, as one number or one for each dim
key_padding_mask | True where a key counts for nothing
kwargs | keywords that are handed on
label_smoothing | how much of the target is spread over all classes, from 0 to 1
last_epoch | the epoch that was the last one, where a run goes on; -1 for a new run
layer_norm_eps | a small number that keeps the divisors of the normalisation from 0
layout | `strided`
left | whether the matrix is on the left of what is solved for
length | the number of elements
level | changes nothing: there is one level
log_input | whether the input is the logarithm of the rate
log_probs | the logarithms of the probabilities (T, N, C)
log_target | whether the target is a logarithm, too
loc | the location, or mean
logits | the logarithms of odds, or of probabilities; in the place of `probs`
lower upper min_val max_val | the bounds
triangular_solve.upper cholesky.upper | whether the upper triangle is meant
solve_triangular.upper | whether the matrix is an upper triangle
lr | the learning rate, a number or a tensor
lr_lambda | a function of the epoch, or one for each group, that gives the factor of the rate
margin | how far apart things have to be to cost nothing
mat | a matrix
max min | the bounds, None for none
max_norm | the largest norm of a row; longer ones are scaled to it
maximize | whether the objective is to grow, not to fall
mean | the mean of what is drawn
memory_format | the order of dims in memory
mode | which of the ways that the description names
momentum | how much of the past is kept, or how fast running statistics follow (None: all alike)
nan posinf neginf | what stands for NaN, infinity and minus infinity
negative_slope | the slope below 0
nesterov | whether the step looks ahead
new_state | what `get_rng_state` gave
no_grad_set | variables that get no gradient
nondet_tol | how far two runs may differ
nonlinearity | the name of the function
norm_first | whether layers are normalised before they are applied, not after
norm_type | which norm: the power p
normalized_shape | the sizes of the last dims, over which is normalised
ns_coefficients | the factors of the iteration that makes an update orthogonal
num_classes n_classes | the number of classes
num_features | the number of channels
num_groups | into how many groups the channels go
num_layers | how many layers lie over one another
num_threads | the number of threads
num_samples | how many are drawn
obj | what is to be saved
other | the second tensor, or a number
out | a tensor that the result is written into, and which is returned
out_channels | the number of channels of the output
out_int32 | whether positions are int32, not int64
output_padding | rows that are added at one end, where several sizes would fit
output_ratio | the size of the output in parts of that of the input
output_size | the size of the output, as one number or for each dim; None keeps that of the input
p | the probability that an element is set to 0
dist.p norm.p cdist.p pairwise_distance.p PairwiseDistance.p | which norm: the power
triplet_margin_loss.p TripletMarginLoss.p renorm.p pdist.p | which norm: the power
padding | how many elements are added at each end
padding_idx | the row that is not trained
padding_mode | what is added: "zeros", "reflect", "replicate" or "circular"
params | the parameters, or dicts of groups of them with options of their own
periodic | whether the window is one period long, as spectra want it, not symmetric
persistent | whether it is part of the state dict
pin_memory | changes nothing
pin_memory_device | changes nothing
pivot | whether rows are swapped
pos_weight | a factor of the positive part, for each class
probs | the probabilities, from 0 to 1
proj_size | the length that outputs are projected to; 0 for none
q | which parts, from 0 to 1
query key value | tensors (*, L, E), of which the query asks and the others answer
raise_exception | whether a difference is an error
rate | the rate, above 0
recompute_scale_factor | whether the factor is computed again from the rounded sizes
reduce size_average | older names for `reduction`
reduction | "none", "mean" or "sum": what becomes of the losses of all elements
index_reduce.reduce scatter_reduce.reduce segment_reduce.reduce | the name of what joins the values
reinterpreted_batch_ndims | how many dims of the batch become dims of an event
requires_grad | whether the result is a leaf whose gradient is wanted
retain_graph | whether the graph is kept for another sweep; by default as `create_graph`
return_indices | whether the positions of the maxima are returned, too
rtol | the relative difference that is allowed
running_mean running_var | statistics that are used, and in training follow the data; or None
scale | the scale, above 0
scale_factor | by how much sizes grow, as one number or one for each dim
scale_grad_by_freq | whether gradients are divided by how often a row occurs
schedulers | the schedules
seed | a whole number
shape size sizes | the sizes, as several numbers or one sequence
shapes | the shapes
CrossMapLRN2d.size LocalResponseNorm.size | the number of channels that are summed over
some | whether no more columns are computed than are needed
sorted_sequence | the boundaries, in rising order along the last dim
sparse | whether the gradient is a sparse tensor
sparse_grad | changes nothing
split_size_or_sections | the length of a piece, or a list of all lengths
split_sizes | the lengths of the pieces
src | what is written
std | the standard deviation of what is drawn
storage_offset | the place of the first element in the storage
stride | the distance of two windows, as one number or one for each dim
avg_pool1d.stride avg_pool2d.stride max_pool1d.stride | the distance of windows, by default the size
MaxPool1d.stride MaxPool2d.stride MaxPool3d.stride | the distance of windows, by default the size
as_strided.stride as_strided_scatter.stride | the distance in memory along each dim
strict | whether what does not depend on the inputs is an error
swap | whether the distance of the positive and negative is used where it is smaller
target | what the input is compared with
temperature | the temperature, above 0
tensor | the tensor that is written into, or worked on
tensors | a sequence of tensors, or several of them
theta | the maps, (N, 2, 3) or (N, 3, 4)
threshold | the number above which the input stays as it is
track_running_stats | whether running statistics are kept, and used in evaluation
train training | whether random parts and statistics of the batch are in use
tseq | the parts
type | the dtype
unbiased | whether the divisor is one less than the number of elements
unflattened_size | the sizes that the dim becomes
unitriangular | whether the diagonal is taken to be ones
unpack_data unpack_pivots | whether the factors and the permutation are computed
upscale_factor | how many rows and columns one becomes
validate_args | whether parameters and values are checked; by default as in asserts
values | the numbers, as a tensor
vec | a vector
vec2 | the second vector
vectorize | whether rows are computed together, by `vmap`
volatile | changes nothing
weight | what the input is multiplied with, of the shape that the description gives
cross_entropy.weight CrossEntropyLoss.weight nll_loss.weight NLLLoss.weight | a factor of each class
BCELoss.weight BCEWithLogitsLoss.weight MultiLabelSoftMarginLoss.weight | a factor of each element
weight_decay | how much of the parameter is added to its gradient
Adam.decoupled_weight_decay | whether the decay is that of `AdamW`
window_length | the number of samples
with_replacement | whether an element may be taken several times
x | the input, or places
cdist.x1 cdist.x2 | points, (*, P, D) and (*, R, D)
y | the second tensor
zero_infinity | whether losses that are infinite count for 0, with a gradient of 0
M | what is subtracted first, so that it need not be formed, or None
N | the number of columns, by default that of rows
LD LU | the matrices that the factorisation gave
T_0 | the number of epochs until the first restart
T_max | the number of epochs of half a wave
T_mult | by how much each period is longer than the one before
aweights fweights | weights of the observations: their importance, and how often each occurs
acc_events | changes nothing
activation | "relu" or "gelu", or a function
add_bias_kv | whether a learned key and value are added
add_zero_attn | whether a key and value of zeros are added
adjoint | whether the transposed matrix is solved for
adjust_lr_fn | "original" or "match_rms_adamw": how the rate follows the shape
anneal_epochs | the number of epochs in which the rate becomes `swa_lr`
anneal_strategy | "cos" or "linear"
avg_fn multi_avg_fn | how an average takes up a value: of one parameter, of lists of them
b | the upper bound
a | the lower bound
kaiming_normal_.a kaiming_uniform_.a | the slope below 0 of "leaky_relu"
base_distribution | the distribution that is drawn from first
base_lr max_lr | the lowest and the highest rate
base_momentum max_momentum cycle_momentum | the bounds of the momentum, and whether it moves at all
base_transform | the map
batch | a list of samples
batch_shape event_shape | the shapes of the batch and of one value
between | what the function may not look at between its parts
bias_k bias_v | a key and a value that are added, or None
smooth_l1_loss.beta delta | where the square becomes an absolute value
softplus.beta | how sharply it bends
local_response_norm.alpha local_response_norm.beta | the factor of the sum of squares; the power
local_response_norm.k local_response_norm.size | added to the sum; the number of channels
body_fn cond_fn | functions of the variables: what they become, whether there is another round
loop_vars | the variables at the beginning
buffer | what has the buffer interface
cache_enabled cast_inputs | change nothing
center | whether the mean of the columns is subtracted
centered | whether the variance is used, not the mean of squares
check_dtype | whether dtypes have to be equal, too
checkpoints | variables that are kept; what is between them is computed again
chunk_size | how many examples are computed at a time
component_distribution mixture_distribution | the components, and how often each is drawn
context_fn | a function that gives two contexts: of the first run and of the second
cooldown | how many epochs are not counted after a change
patience | how many epochs may pass without getting better
covariance_matrix precision_matrix scale_tril | the covariance, or its inverse, or factor
d | the threshold of the mean square of an update
d_model | the length of a token
dampening | what part of a gradient is left out of the momentum
dataset datasets | what has samples, or several of them
decay | how much of the average is kept at each step
decoder_layer encoder_layer | a layer, of which copies are made
decoupled_weight_decay | whether the parameter itself shrinks, as in AdamW
default | the function of the case that is in no pair
defaults | the options that groups have where they have none of their own
density | whether counts are divided so that the integral is 1
depth | how deep modules are listed
DataParallel.dim device_ids output_device | change nothing: there is one device
df1 df2 | the degrees of freedom, above 0
dim_feedforward | the length between the two layers of the perceptron
dir_name worker_name use_gzip | the folder, the name in the file, and whether it is compressed
distribution | the distribution
div_factor final_div_factor | the highest rate over the first, and the first over the last
drop_last | whether a batch that is not full is left out
edge_order | whether ends use two or three samples
elementwise_affine | whether there are a weight and a bias for each element
embed_dim_to_check | the length of a token, which is checked
enable_gqa | whether several heads of the query share one of the key
enable_nested_tensor mask_check | change nothing
enabled | whether it does anything
end_factor start_factor | the factors of the rate at the end and at the beginning
epochs steps_per_epoch total_steps | the length of the run, as epochs of so many steps, or as steps
equation | the letters of the dims of each operand, and of the result
error_message | what the error says
eta_min min_lr | the lowest rate
etas | by what a step shrinks and grows
step_sizes | the smallest and the largest step
exclude_zero | whether no element is 0
factor | what the rate is multiplied with
false_fn true_fn | functions of the operands, of which one is called
pred_fn_pairs | pairs of a condition and a function
function fn | a function
no_grad.function enable_grad.function | the function that follows `@`, without parentheses
functions | functions or modules, one after the other
gain | a factor of the standard deviation
gamma | a factor of the rate
grad_tensors | what each gradient begins with
head_bias | whether the first part of the classes has a bias
high low | the bounds; `high` itself is never drawn
history_size max_iter max_eval | how many updates are kept, and the most rounds and calls of a step
tolerance_grad tolerance_change | when it is good enough: by the gradient, by the change
line_search_fn | None or "strong_wolfe"
in1_features in2_features | the lengths of the two inputs
in_proj_weight in_proj_bias out_proj_weight out_proj_bias | the maps before and after attention
q_proj_weight k_proj_weight v_proj_weight | the maps of query, key and value, where they differ
use_separate_proj_weight | whether there are three maps, not one
static_k static_v | a key and a value in the place of the mapped ones
in_shape out_shape | the two shapes
initial | what the reduction begins with
input3 | the matrix that is multiplied
is_causal | whether each place sees only those before it
is_grads_batched | whether `grad_outputs` are several, as rows
kinds | of which kinds: floats, integers, bools
lambd | the bound, or factor, that is called lambda
language env global_setup label sub_label description setup stmt timer | what is timed, and its name
lengths | how long each piece is
loader | what gives batches
loss | the variable to make small
lr_decay | by how much the rate falls with each step
swa_lr | the rate at the end
mat1 mat2 | the two matrices
matrices | two or more matrices
maxnorm | the largest norm
max_dims min_dims max_side min_side | bounds of the numbers of dims and of sizes
milestones | the epochs at which something changes, in rising order
model models module modules mod m | a module, or several
process_group | the group of processes, by default all of them
momentum_decay | by how much the momentum falls
multiprocessing_context | how workers are started: "fork", "spawn" or "forkserver"
name | a name
need_weights | whether the weights are returned, too
nhead num_heads | the number of heads
niter | the number of rounds
node output_nr | the node of the graph, and which of its outputs
noncontiguous | whether there are gaps between its elements
ns_steps | the number of rounds of the iteration that makes an update orthogonal
num_chunks | how many gates there are
num_decoder_layers num_encoder_layers | the numbers of layers
num_workers | how many processes load
op | an operation, or its name
optimizer | the optimiser whose rates change
ord | which norm: a number, or a name
pad | how many elements are added at both ends of the last dim, then the one before, and so on
parameter_and_buffer_dicts | the parameters and buffers by name, as one dict or several
parameter_list | the variables whose gradients are wanted
parameters | a dict of parameters
parent program | the block and the program that it belongs to
path | where the file is
pct_start | the part of the run in which the rate grows
per_sample_weights | a factor of each row, for sums
persistent_workers | whether workers live on from one epoch to the next
pickle_module pickle_protocol | how objects that are not tensors are pickled
pivots | the rows that were swapped
power | the power
preserve_rng_state | whether the second run draws the same numbers
primal tangent | a value and its derivative
profile_memory with_stack with_flops with_modules | what is recorded beside times
r | how many are taken at a time
range | the bounds of the bins
rcond | how small singular values count as 0, relative to the largest
replacement | whether a sample may be drawn again
root | the module whose parts are replaced
rule | the rule
sampler | what gives the order of positions
scale_fn scale_mode | a factor of the amplitude, and whether it is one of cycles or of steps
seconds | a time
segments | into how many parts it is cut
shifts | by how many places
shuffle | whether the order is random
split | the kind
step_size | the number of epochs from one change to the next
step_size_up step_size_down | the numbers of steps up and down
t0 | the step at which the average begins
targets | the classes, or what is to be differentiated
tau | the factors of the reflections
three_phase | whether the rate falls twice: to the first, then to the last
threshold_mode | "rel" or "abs": what the threshold is relative to
tol | how small singular values count as 0
total_iters | the number of epochs until it ends
trainable | whether an optimiser changes it
transforms | the maps, one after the other
transpose | whether the transposed factor is used
unpack_hook pack_hook | functions of what is saved: what is kept, and what comes of that
use_buffers | whether buffers are averaged, too
vec1 | the first vector
weights | a weight for each sample
worker_init_fn | a function of the worker's number, called when it starts
grad.argnums value_and_grad.argnums | the place, or places, of the arguments to differentiate by
safe_globals | classes and functions that files may name
endianness | the order of bytes of files that do not say theirs
scan.f | a function of the carry and one x, which gives the next carry and a y
scan.init | the carry at the beginning
scan.xs | tensors, or nested containers of them, whose first dim is gone along
cond.pred | a bool, or a tensor of one
cond.operands | what both functions are given
switch_case.branch_index | the number of the branch
switch_case.branch_fns | the branches, in a list, a dict or pairs with their numbers
compile.disable | whether the function is given back as it is
compile.dynamic compile.backend compile.mode compile.name | change nothing
compile.model | a function or a module
update_bn.loader update_bn.model | what gives batches, and the module
update_bn.device | where batches are moved to
switch_case.default | the function for all other numbers
parts | the transforms, the first one first
type_p type_q | the two classes of distributions
WorkerInfo.id | the number of the worker
"""

WORDS = {name: text.strip() for line in TEXT.strip().splitlines()
         for names, text in [line.split("|")] for name in names.split()}
